package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// childVariable, when set, makes the test binary a server: one in a process of its own, for tests to kill.
const childVariable = "TOOLGRANT_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		testkit.Main(m)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the tests end, however they end
		os.Exit(1)
	}()
	main()
}

// child is a server in a process of its own. It can be killed and started again.
type child struct {
	t         *testing.T
	settings  []string
	grpc, web string
	log       *output
	binary    string    // empty: this one
	process   *exec.Cmd // the last one
	running   bool
}

// newChild prepares a server with these settings, as environment variables; the last one of a name counts. It waits for
// Redis longer than any busy machine takes. When the test ends, the server must have gone on to the end, and end cleanly.
func newChild(t *testing.T, settings ...string) *child {
	t.Helper()
	c := &child{t: t, grpc: freeAddress(t), web: freeAddress(t), log: &output{}}
	c.settings = append([]string{childVariable + "=1", "TOOLGRANT_CONFIG=", "TOOLGRANT_DATABASE_URL=",
		"TOOLGRANT_GRPC_ADDR=" + c.grpc, "TOOLGRANT_HTTP_ADDR=" + c.web, "TOOLGRANT_QUOTA_TIMEOUT=10s"}, settings...)
	t.Cleanup(func() {
		if c.running {
			c.stop()
		}
		for _, bad := range []string{"DATA RACE", "panic", "internal error"} {
			if strings.Contains(c.log.String(), bad) {
				t.Errorf("the server's log tells of a %s", bad)
			}
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", c.log)
		}
	})
	return c
}

// start starts the server, and does not wait until it is ready.
func (c *child) start() {
	c.t.Helper()
	c.process = exec.Command(cmp.Or(c.binary, os.Args[0]))
	c.process.Env = append(os.Environ(), c.settings...)
	c.process.Stdout, c.process.Stderr = c.log, c.log
	c.process.WaitDelay = 10 * time.Second // for whoever else holds its output
	if _, err := c.process.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if err := c.process.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.running = true
}

func (c *child) awaitReady() {
	c.t.Helper()
	await(c.t, "the server is ready", func() bool { return ready(c.web) == http.StatusOK })
}

// saysReady tells whether all who ask the server are told that it is ready.
func (c *child) saysReady(ctx context.Context, from client) bool {
	c.t.Helper()
	return ready(c.web) == http.StatusOK && from.healthIs(ctx, c.t, healthv1.HealthCheckResponse_SERVING)
}

// saysNotReady tells whether all who ask the server are told that it is not ready.
func (c *child) saysNotReady(ctx context.Context, from client) bool {
	c.t.Helper()
	return ready(c.web) == http.StatusServiceUnavailable && from.healthIs(ctx, c.t, healthv1.HealthCheckResponse_NOT_SERVING)
}

// kill is kill -9. It returns when the process is no more.
func (c *child) kill() {
	c.t.Helper()
	c.running = false
	if err := c.process.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = c.process.Wait() // its status is that it was killed
}

// ended tells whether the process has ended by itself.
func (c *child) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.process.Process.Pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// stop ends the server the clean way.
func (c *child) stop() {
	c.t.Helper()
	c.running = false
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = c.process.Process.Kill() })
	defer late.Stop()
	if err := c.process.Wait(); err != nil {
		c.t.Errorf("the server did not end cleanly: %v", err)
	}
}

// client is a connection to a server.
type client struct {
	v1.EntitlementServiceClient
	v1.ChatServiceClient
	v1.AdminServiceClient
	v1.QuotaServiceClient
	v1.CallServiceClient
	v1.ApprovalServiceClient
	v1.AuditServiceClient
	health healthv1.HealthClient
}

// healthIs tells whether gRPC's health service says so, of the server and of a service.
func (c client) healthIs(ctx context.Context, t *testing.T, want healthv1.HealthCheckResponse_ServingStatus) bool {
	t.Helper()
	for _, service := range []string{"", v1.ChatService_ServiceDesc.ServiceName} {
		response, err := c.health.Check(ctx, &healthv1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		if response.GetStatus() != want {
			return false
		}
	}
	return true
}

// connect returns a new connection: one that failed waits before it tries again.
func (c *child) connect() client {
	c.t.Helper()
	conn, err := grpc.NewClient(c.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return clientOf(conn)
}

func clientOf(conn *grpc.ClientConn) client {
	return client{v1.NewEntitlementServiceClient(conn), v1.NewChatServiceClient(conn), v1.NewAdminServiceClient(conn),
		v1.NewQuotaServiceClient(conn), v1.NewCallServiceClient(conn), v1.NewApprovalServiceClient(conn), v1.NewAuditServiceClient(conn),
		healthv1.NewHealthClient(conn)}
}
