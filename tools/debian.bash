# Sourced by what installs Debian's packages for tests. Root, or sudo without a password, installs them; others unpack
# them, and what they need, into a folder of their own.

# install_debian package folder: fails if there is nothing to install with. Whoever unpacks finds all in the folder, as
# it would be in /.
install_debian() {
    local package=$1 folder=$2 work apt as_root=()
    command -v apt-get >/dev/null || { echo "there is no apt-get to install $package with" >&2; return 1; }
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo -n)
    fi
    if [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; then
        "${as_root[@]}" apt-get update -qq &&
            "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
                -o DPkg::Lock::Timeout=300 "$package" || { echo "apt-get could not install $package" >&2; return 1; }
        return 0
    fi
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # what it is now
    trap "rm -rf '$work'" EXIT
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
    apt=(apt-get -qq -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o Debug::NoLocking=true)
    "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends --download-only "$package" ||
        { echo "apt-get could not download $package" >&2; return 1; }
    for archive in "$work"/cache/archives/*.deb; do
        dpkg-deb --extract "$archive" "$work/root"
    done
    mkdir -p "$(dirname "$folder")"
    rm -rf "$folder"
    mv "$work/root" "$folder"
    echo "$package is unpacked in $folder."
}
