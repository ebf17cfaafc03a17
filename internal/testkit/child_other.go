//go:build !linux

package testkit

import "os/exec"

// dieWithUs does nothing: only Linux ends children with their parent.
func dieWithUs(*exec.Cmd) {}
