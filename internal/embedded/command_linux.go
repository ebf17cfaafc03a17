package embedded

import (
	"os/exec"
	"syscall"
)

// dieWithUs makes the kernel send sig to the child when we end without having
// ended it, kill -9 included. The kernel watches the thread that started the
// child, not the process: that thread must be locked for the child's life.
func dieWithUs(cmd *exec.Cmd, sig syscall.Signal) {
	cmd.SysProcAttr.Pdeathsig = sig
}
