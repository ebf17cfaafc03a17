package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest PostgreSQL that a new cluster is made with: the
// oldest one that Toolgrant is tested with.
const oldestMajor = 15

// binaries is a folder that holds a usable PostgreSQL server.
type binaries struct {
	folder  string
	version string // "15.18"
	major   int    // 15
}

func (b binaries) postgres() string { return filepath.Join(b.folder, "postgres") }
func (b binaries) initdb() string   { return filepath.Join(b.folder, "initdb") }

func (b binaries) String() string { return "PostgreSQL " + b.version + " in " + b.folder }

// suits tells whether the binaries may serve a cluster of the given major
// version; 0 stands for a cluster yet to be made.
func (b binaries) suits(major int) bool {
	if major == 0 {
		return b.major >= oldestMajor
	}
	return b.major == major
}

// installedFolders lists the folders of this machine that may hold PostgreSQL's
// binaries, preferred ones first: what is on PATH is somebody's choice, then
// where distributions keep them.
func installedFolders() []string {
	folders := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
		"/usr/pgsql-*/bin",                  // PGDG's RPMs
		"/usr/lib/postgresql*/bin",          // SUSE, Gentoo
		"/usr/libexec/postgresql*",          // Alpine
		"/opt/homebrew/opt/postgresql*/bin", // Homebrew, Apple silicon
		"/usr/local/opt/postgresql*/bin",    // Homebrew, Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
		"/Library/PostgreSQL/*/bin", // EDB's installer
		"/opt/local/lib/postgresql*/bin",
		"/usr/local/pgsql/bin", // built from source
	} {
		folders = append(folders, globNewestFirst(pattern)...)
	}
	return folders
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// globNewestFirst expands a pattern and sorts what it matches by the last
// number in it, which in all these patterns is the version.
func globNewestFirst(pattern string) []string {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil // only a malformed pattern, which a test would show
	}
	version := func(path string) float64 {
		numbers := number.FindAllString(path, -1)
		if len(numbers) == 0 {
			return 0
		}
		v, _ := strconv.ParseFloat(numbers[len(numbers)-1], 64)
		return v
	}
	slices.SortStableFunc(matches, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return matches
}

// findOrFetchBinaries returns binaries that suit a cluster of the given major
// version (0: none yet): installed ones, else those downloaded earlier, else
// freshly downloaded ones.
func (p *Postgres) findOrFetchBinaries(ctx context.Context, opts Options, major int) (binaries, error) {
	store := filepath.Join(p.dataDir, "postgres-binaries")
	folders := append(opts.folders(), globNewestFirst(filepath.Join(escapeGlob(store), "*", "bin"))...)

	var unsuitable []string
	seen := map[string]bool{}
	for _, folder := range folders {
		folder, err := realBinFolder(folder)
		if err != nil || seen[folder] {
			continue
		}
		seen[folder] = true
		found, err := p.account.inspect(ctx, folder)
		switch {
		case err != nil:
			unsuitable = append(unsuitable, fmt.Sprintf("%s (%v)", folder, err))
		case found.suits(major):
			return found, nil
		default:
			unsuitable = append(unsuitable, found.String())
		}
	}
	if err := ctx.Err(); err != nil {
		return binaries{}, fmt.Errorf("looking for PostgreSQL: %w", err)
	}

	why := "no usable PostgreSQL is installed"
	if major != 0 {
		why = fmt.Sprintf("the data in %s belongs to PostgreSQL %d, and no PostgreSQL %d is installed", p.cluster, major, major)
	}
	if len(unsuitable) > 0 {
		why += "; found but not suitable: " + strings.Join(unsuitable, ", ")
	}
	p.log.Info("downloading PostgreSQL: " + why)
	wanted := major
	if wanted == 0 {
		wanted = opts.downloadMajor
	}
	fetched, err := p.fetchBinaries(ctx, store, wanted, opts.BinaryRepositoryURL)
	if err != nil {
		install := fmt.Sprintf("PostgreSQL %d or newer", oldestMajor)
		if major != 0 {
			install = fmt.Sprintf("PostgreSQL %d", major)
		}
		return binaries{}, fmt.Errorf("%s, and downloading it failed: %w; install %s, "+
			"or configure a database of your own", why, err, install)
	}
	return fetched, nil
}

// realBinFolder returns the folder that really holds the programs if folder
// does, or links to them: they find their other files relative to where they
// are, and several links may lead to the same place.
func realBinFolder(folder string) (string, error) {
	if !filepath.IsAbs(folder) {
		return "", errors.New("not an absolute path") // an odd PATH: do not run what lies around
	}
	postgres, err := filepath.EvalSymlinks(filepath.Join(folder, "postgres"))
	if err != nil {
		return "", err
	}
	for _, dir := range []string{filepath.Dir(postgres), folder} {
		if isFile(filepath.Join(dir, "postgres")) && isFile(filepath.Join(dir, "initdb")) {
			return dir, nil
		}
	}
	return "", errors.New("no initdb beside postgres")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

var versionNumber = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// inspect asks the binaries in folder for their version, as the account that is
// to run them, so that what it may not run is not chosen.
func (a account) inspect(ctx context.Context, folder string) (binaries, error) {
	found := binaries{folder: folder}
	output, err := a.run(ctx, found.postgres(), "--version")
	if err != nil {
		return binaries{}, err
	}
	match := versionNumber.FindStringSubmatch(output)
	if match == nil {
		return binaries{}, fmt.Errorf("unknown version %q", strings.TrimSpace(output))
	}
	found.version = match[1]
	found.major, err = strconv.Atoi(match[2])
	return found, err
}
