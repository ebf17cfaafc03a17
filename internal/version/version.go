// Package version tells which build of Toolgrant runs.
package version

import (
	"runtime"
	"runtime/debug"
)

// stamp is set by the linker: -ldflags "-X github.com/toolgrant/toolgrant/internal/version.stamp=v1.2.3".
var stamp string

// Name is what the build is called: as the linker was told, or else the module's version as the go command knows it.
func Name() string {
	if stamp != "" {
		return stamp
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Long is Name with the version of Go that it was built with.
func Long() string {
	return "toolgrant " + Name() + " (" + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
