package embedded

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// run executes a program as the account, to its end, and returns what it wrote.
func (a account) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	a.apply(cmd)
	// initdb removes what it made when it is told to end, but not when killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second

	// The thread that starts the child must live as long as the child: see
	// dieWithUs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithUs(cmd, syscall.SIGTERM)
	output, err := cmd.CombinedOutput()
	if err == nil {
		return string(output), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if text := strings.TrimSpace(string(output)); text != "" {
		return "", fmt.Errorf("%s: %w: %s", program, err, text)
	}
	return "", fmt.Errorf("%s: %w", program, err)
}
