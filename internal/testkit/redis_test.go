package testkit

import (
	"bufio"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangWithRedis makes TestHangsWithRedis start a server and hang, in a process
// of its own.
const hangWithRedis = "TOOLGRANT_TEST_TESTKIT_HANG"

// ask sends a Redis at address one command and returns the first line of what
// it answers.
func ask(t *testing.T, address, command string) (string, error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(testDeadline)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func wantAnswer(t *testing.T, address, command, want string) {
	t.Helper()
	if got, err := ask(t, address, command); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", command, got, err, want)
	}
}

func TestRedisIsTheTestsOwn(t *testing.T) {
	first, second := Redis(t), Redis(t)
	wantAnswer(t, first, "SET key 1", "+OK")
	wantAnswer(t, second, "EXISTS key", ":0")
}

func TestRedisCanBeDisturbed(t *testing.T) {
	r := RedisServer(t)
	wantAnswer(t, r.URL, "SET key 1", "+OK")

	r.Pause()
	answered := make(chan string, 1)
	go func() {
		answer, err := ask(t, r.URL, "EXISTS key")
		answered <- answer + errorText(err)
	}()
	select {
	case answer := <-answered:
		t.Errorf("a paused server answered: %s", answer)
	case <-time.After(100 * time.Millisecond): // too short to prove it, long enough to notice
	}
	r.Resume()
	if answer := <-answered; answer != ":1" {
		t.Errorf("a resumed server answered %s", answer)
	}

	r.Kill()
	if answer, err := ask(t, r.URL, "PING"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed server: %s, %v", answer, err)
	}
	r.Kill()
	r.Start()
	wantAnswer(t, r.URL, "EXISTS key", ":0")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRedisEndsWithTheTest(t *testing.T) {
	var r *PrivateRedis
	t.Run("inner", func(t *testing.T) {
		r = RedisServer(t)
		r.Pause()
	})
	if _, err := ask(t, r.URL, "PING"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it lives on: %v", err)
	}
}

func TestHangsWithRedis(t *testing.T) {
	if os.Getenv(hangWithRedis) == "" {
		t.Skip("run by TestRedisDiesWithTheProcess")
	}
	if _, err := os.Stdout.WriteString("redis=" + Redis(t) + "\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(testDeadline)
}

func TestRedisDiesWithTheProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestHangsWithRedis$")
	cmd.Env = append(os.Environ(), hangWithRedis+"=1")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	dieWithUs(cmd) // if only this test is killed before it kills
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := ""
	for lines := bufio.NewScanner(output); address == "" && lines.Scan(); {
		_, address, _ = strings.Cut(lines.Text(), "redis=")
	}
	wantAnswer(t, address, "PING", "+PONG")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(testDeadline); ; time.Sleep(10 * time.Millisecond) {
		_, err := ask(t, address, "PING")
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it outlived its test: %v", err)
		}
	}
}

func TestNoRedisFailsTests(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestRedisIsTheTestsOwn$")
	cmd.Env = append(os.Environ(), "PATH=/nowhere")
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(output), "no Redis to test with") {
		t.Errorf("error %v, output:\n%s", err, output)
	}
}
