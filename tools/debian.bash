# Sourced by what installs Debian's packages.

may_be_root() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

# apt_install package...: as root; it waits for others who install.
apt_install() {
    as_root apt-get update -qq &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

# install_debian package folder: who may not be root unpacks the package, and what it needs, into the folder, where all is
# as it would be in /. It fails if there is nothing to install with.
install_debian() {
    local package=$1 folder=$2 work apt
    command -v apt-get >/dev/null || { echo "there is no apt-get to install $package with" >&2; return 1; }
    if may_be_root; then
        apt_install "$package" || { echo "apt-get could not install $package" >&2; return 1; }
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
        dpkg-deb --extract "$archive" "$work/root" || { echo "$package could not be unpacked" >&2; return 1; }
    done
    mkdir -p "$(dirname "$folder")"
    rm -rf "$folder"
    mv "$work/root" "$folder"
    echo "$package is unpacked in $folder."
}
