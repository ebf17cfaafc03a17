package mcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

// patience is how long a child process may take to end by itself, and then again when it is asked to.
const patience = 500 * time.Millisecond

// inherited are the variables of the environment that every child process gets. It gets no others but those that its
// entry names: ours has secrets.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// process is an MCP server that is a child process.
type process struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  io.ReadCloser
	stderr  *tail
	stop    func() // ends it, and all that it started
}

func start(server *catalog.MCPServer, environment map[string]string) (*process, error) {
	words, err := server.CommandLine()
	if err != nil {
		return nil, err
	}
	command := exec.Command(words[0], words[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it starts can be ended with it
	command.WaitDelay = patience
	command.Env = []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	for name, value := range environment {
		command.Env = append(command.Env, name+"="+value)
	}
	p := &process{command: command, stderr: &tail{}}
	command.Stderr = p.stderr
	if p.stdin, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	read, write, err := os.Pipe() // not the command's own, which would be closed before all is read
	if err != nil {
		return nil, err
	}
	p.stdout, command.Stdout = read, write
	err = command.Start()
	_ = write.Close() // the child has one of its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("it could not be started: %w", err), read.Close(), p.stdin.Close())
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	p.stop = sync.OnceFunc(func() {
		_ = p.stdin.Close()
		for _, signal := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} {
			if signal != 0 {
				_ = syscall.Kill(-command.Process.Pid, signal)
			}
			select {
			case <-ended:
				_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // those that it left behind
				_ = p.stdout.Close()
				return
			case <-time.After(patience):
			}
		}
		_ = p.stdout.Close()
	})
	return p, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 1 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailBytes):]...)
	t.text = append(t.text[:0], t.text[max(0, len(t.text)-tailBytes):]...)
	return len(p), nil
}

// String is the end of what was written, on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "")), " ")
}
