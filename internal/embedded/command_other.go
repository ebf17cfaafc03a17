//go:build !linux

package embedded

import (
	"os/exec"
	"syscall"
)

// dieWithUs does nothing: only Linux ends children with their parent. A server
// left over by a killed Toolgrant is stopped at the next start instead.
func dieWithUs(*exec.Cmd, syscall.Signal) {}
