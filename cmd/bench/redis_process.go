package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// redisProcess is a redis-server on loopback that this program started, and may treat as it likes. It keeps nothing on
// disk: one that is started again is empty.
type redisProcess struct {
	program, dir string
	port         int
	command      *exec.Cmd // nil: it does not run
}

// newRedis prepares one on a port; 0: one that is free. It does not start it. An empty program is the redis-server on
// the PATH, or that of tools/install-redis.
func newRedis(program string, port int) (*redisProcess, error) {
	if program == "" {
		found, missing := exec.LookPath("redis-server")
		if missing != nil {
			cache, err := os.UserCacheDir()
			if err != nil {
				return nil, missing
			}
			if found = filepath.Join(cache, "toolgrant", "redis", "bin", "redis-server"); !exists(found) {
				return nil, fmt.Errorf("--redis-server: %w", missing)
			}
		}
		program = found
	}
	if port == 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		port = l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "toolgrant-bench-")
	if err != nil {
		return nil, err
	}
	return &redisProcess{program: program, dir: dir, port: port}, nil
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func (r *redisProcess) url() string { return "redis://127.0.0.1:" + strconv.Itoa(r.port) + "/0" }

// start returns when the server accepts connections.
func (r *redisProcess) start(ctx context.Context) error {
	command := exec.CommandContext(ctx, r.program, "--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", r.dir, "--daemonize", "no")
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("--redis-server: %w", err)
	}
	r.command = command
	var log strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if log.WriteString(lines.Text() + "\n"); strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return nil
		}
	}
	return errors.Join(fmt.Errorf("redis did not start on port %d; it logged:\n%s", r.port, log.String()), r.kill())
}

// kill is kill -9. It returns when the process is no more.
func (r *redisProcess) kill() error {
	if r.command == nil {
		return nil
	}
	err := r.command.Process.Kill()
	_ = r.command.Wait() // its status is that it was killed
	r.command = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// pause stops the process where it is: connections stay, and nobody answers.
func (r *redisProcess) pause() error { return r.command.Process.Signal(syscall.SIGSTOP) }

func (r *redisProcess) resume() error { return r.command.Process.Signal(syscall.SIGCONT) }

func (r *redisProcess) close() error { return errors.Join(r.kill(), os.RemoveAll(r.dir)) }
