// Command sbom tells what a binary is made of: which modules, of which versions and sums, under which licences. It
// writes a software bill of materials (CycloneDX, JSON), and fails if a licence is not one that Toolgrant may be
// distributed with. The same binary has the same bill. It is a module of its own, so that binaries don't get what it needs.
//
//	sbom BINARY > sbom.json
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// reviewed are modules with texts of their own, which a person has read.
var reviewed = map[string]string{
	"github.com/xi2/xz": "Public domain", // as the code that it was translated from
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY > sbom.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	bom := cyclonedx.NewBOM()
	main := component(cyclonedx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	components[0].Licenses = licence("BSD-3-Clause")
	var faults []error
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		found, err := licencesOf(module)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s@%s: %w", module.Path, module.Version, err))
			continue
		}
		c := component(cyclonedx.ComponentTypeLibrary, module.Path, module.Version)
		c.Licenses = licence(found...)
		if module.Sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}
		}
		components = append(components, c)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	bom.Components = &components
	return cyclonedx.NewBOMEncoder(os.Stdout, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
}

func licence(names ...string) *cyclonedx.Licenses {
	var all cyclonedx.Licenses
	for _, name := range names {
		l := &cyclonedx.License{ID: name}
		if strings.Contains(name, " ") { // not one of SPDX
			l = &cyclonedx.License{Name: name}
		}
		all = append(all, cyclonedx.LicenseChoice{License: l})
	}
	return &all
}

// licencesOf finds a module's licences in its files, and refuses one that is not allowed.
func licencesOf(module *debug.Module) ([]string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module.Path+"@"+module.Version).Output()
	if err != nil {
		return nil, err
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(download.Dir)
	if err != nil {
		return nil, err
	}
	if name := reviewed[module.Path]; name != "" {
		return []string{name}, nil
	}
	var found []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "UNLICENSE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(download.Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		ids := identify(string(text))
		if len(ids) == 0 {
			return nil, fmt.Errorf("%s is not a licence that is known and allowed", e.Name())
		}
		for _, name := range ids {
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no licence is found")
	}
	slices.Sort(found)
	return found, nil
}
