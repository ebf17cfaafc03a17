package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// startSelf starts this program again as a server, which errors call what it is, and which ends when its input does. What it is told first, and says where
// it serves, is greet's.
func startSelf(ctx context.Context, subcommand, what string, log io.Writer, greet func(in io.Writer, out io.Reader) (address string, err error)) (address string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	command := exec.CommandContext(ctx, self, subcommand)
	command.Stderr = log
	in, err := command.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(in.Close(), command.Wait()) }
	if address, err = greet(in, out); err != nil {
		return "", nil, fmt.Errorf("%s: %w", what, errors.Join(err, stop()))
	}
	return address, stop, nil
}
