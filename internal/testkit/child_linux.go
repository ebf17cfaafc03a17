package testkit

import (
	"os/exec"
	"syscall"
)

// dieWithUs makes the kernel kill the child when we end without having ended it:
// killed, in a panic, or at go test's time limit. The kernel watches the thread
// that started the child, not the process: that thread must be locked for the
// child's life.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
