package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// busy tells whether an error says which limit is reached, and when to come back.
func busy(err error, code codes.Code, reason v1.ErrorReason) bool {
	s := status.Convert(err)
	said, when := false, false
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			said = d.GetReason() == reason.String()
		case *errdetails.RetryInfo:
			when = d.GetRetryDelay().AsDuration() > 0
		}
	}
	return s.Code() == code && said && when
}

// Calls that wait for the database are under way, and only so many may be.
func TestCallsThatAreTooManyAreRefused(t *testing.T) {
	t.Parallel()
	for _, limit := range []struct {
		setting string
		code    codes.Code
		reason  v1.ErrorReason
		counted string
	}{
		{"TOOLGRANT_MAX_CALLS=2", codes.Unavailable, v1.ErrorReason_ERROR_REASON_SERVER_BUSY, "server"},
		{"TOOLGRANT_MAX_CALLS_PER_CALLER=2", codes.ResourceExhausted, v1.ErrorReason_ERROR_REASON_CALLER_BUSY, "caller"},
	} {
		t.Run(limit.counted, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			relay, url := newRelay(t, testkit.Database(t))
			server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, limit.setting)
			server.start()
			server.awaitReady()
			c := server.connect()
			if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
				t.Fatal(err)
			}
			relay.silent.Store(true)
			waiting, giveUp := context.WithCancel(ctx)
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { _, _ = c.ExportManifest(waiting, &v1.ExportManifestRequest{}) })
			}
			await(t, "two calls are under way", func() bool { return scrape(t, server.web).of("toolgrant_load_under_way", "call") == 2 })
			_, err := c.ExportManifest(ctx, &v1.ExportManifestRequest{})
			if !busy(err, limit.code, limit.reason) {
				t.Errorf("the third call: %v %v", err, status.Convert(err).Details())
			}
			if _, err := c.health.Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
				t.Errorf("a health check: %v", err)
			}
			if n := scrape(t, server.web).of("toolgrant_load_refused_total", "call", limit.counted); n != 1 {
				t.Errorf("%g refusals are counted", n)
			}
			giveUp()
			calls.Wait()
			relay.speak()
			await(t, "calls are answered", func() bool {
				_, err := c.ExportManifest(ctx, &v1.ExportManifestRequest{})
				return err == nil
			})
		})
	}
}

func TestStreamsThatAreTooManyAreRefused(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_MAX_STREAMS_PER_CALLER=3")
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	watch := func(ctx context.Context) error {
		stream, err := c.WatchTools(ctx, &v1.WatchToolsRequest{ChatId: "chat", UserId: "u", Surface: web})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	watching, stop := context.WithCancel(ctx)
	for range 3 {
		if err := watch(watching); err != nil {
			t.Fatal(err)
		}
	}
	if err := watch(ctx); !busy(err, codes.ResourceExhausted, v1.ErrorReason_ERROR_REASON_CALLER_BUSY) {
		t.Errorf("the fourth stream: %v", err)
	}
	if _, err := resolve(ctx, c, "chat"); err != nil {
		t.Errorf("a call: %v", err)
	}
	stop()
	await(t, "another stream may be opened", func() bool { return watch(ctx) == nil })
}

// What is required of messages, headers and deadlines is required before much is read.
func TestMessagesHeadersAndDeadlinesAreBounded(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_MAX_MESSAGE_BYTES=64KiB", "TOOLGRANT_REQUIRE_DEADLINES=true")
	server.start()
	server.awaitReady()
	c := server.connect()
	short, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := c.ApplyManifest(short, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	large := world()
	large.Tools[0].Description = strings.Repeat("x", 65_000)
	large.Tools[1].Description = strings.Repeat("x", 65_000)
	if _, err := c.ApplyManifest(short, &v1.ApplyManifestRequest{Manifest: large}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large message: %v", err)
	}
	body := `{"chat_id": "` + strings.Repeat("x", 70_000) + `"}`
	if code, _, err := server.post("EntitlementService/ResolveTools", body); err != nil || code < 400 {
		t.Errorf("a large message over HTTP: %d %v", code, err)
	}
	_, err := resolve(context.WithoutCancel(ctx), c, "chat") // testkit's has a deadline
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(fmt.Sprint(status.Convert(err).Details()), "DEADLINE_REQUIRED") {
		t.Errorf("a call without a deadline: %v", err)
	}
	if _, err := c.health.Check(context.WithoutCancel(ctx), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("a health check without one: %v", err)
	}
	stream, err := c.WatchTools(context.WithoutCancel(ctx), &v1.WatchToolsRequest{ChatId: "chat", UserId: "u", Surface: web})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Errorf("a stream without one: %v", err)
	}
	if _, err := resolve(short, c, "chat"); err != nil {
		t.Errorf("a call with one: %v", err)
	}
}

// attacker speaks HTTP/2 as no library would.
type attacker struct {
	net.Conn
	*http2.Framer
	headers []byte // of a call of ResolveTools
	next    uint32 // stream
}

func (c *child) attack() (*attacker, error) {
	conn, err := net.Dial("tcp", c.grpc)
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	a := &attacker{Conn: conn, Framer: http2.NewFramer(conn, conn), next: 1}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", v1.EntitlementService_ResolveTools_FullMethodName},
		{":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return nil, err
		}
	}
	a.headers = block.Bytes()
	if err := a.WriteSettings(); err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
	return a, nil
}

// begin begins a call and sends nothing of its request.
func (a *attacker) begin() error {
	err := a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.next, BlockFragment: a.headers, EndHeaders: true})
	a.next += 2
	return err
}

// Floods of streams, whether they are left open, reset at once, or never read, take nothing from others that does not
// come back.
func TestFloodsOfStreamsAreSurvived(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	const perConnection = 100
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), fmt.Sprint("TOOLGRANT_MAX_STREAMS_PER_CONNECTION=", perConnection))
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	answers := func(during string) {
		t.Helper()
		if _, err := resolve(ctx, c, "chat"); err != nil {
			t.Errorf("%s: %v", during, err)
		}
	}
	answers("before")
	before := scrape(t, server.web).of("go_goroutines")
	var attackers []*attacker
	for range 5 {
		a, err := server.attack()
		if err != nil {
			t.Fatal(err)
		}
		attackers = append(attackers, a)
		for range 1000 {
			if err := a.begin(); err != nil {
				break // the server has had enough of it, as it may
			}
		}
	}
	answers("calls that send nothing")
	if during := scrape(t, server.web).of("go_goroutines"); during > before+6*perConnection+1000 {
		t.Errorf("%g goroutines, %g before", during, before)
	}
	for range 3 {
		a, err := server.attack()
		if err != nil {
			t.Fatal(err)
		}
		attackers = append(attackers, a)
		for range 20_000 {
			stream := a.next
			if a.begin() != nil || a.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
				break
			}
		}
	}
	answers("calls that are reset at once")
	pings, err := server.attack()
	if err != nil {
		t.Fatal(err)
	}
	await(t, "who pings without end is closed", func() bool {
		for range 100 {
			if pings.WritePing(false, [8]byte{}) != nil {
				return true
			}
		}
		return false
	})
	answers("pings without end")
	for _, a := range attackers {
		_ = a.Close()
	}
	await(t, "the goroutines of the attackers end", func() bool { return scrape(t, server.web).of("go_goroutines") < before+perConnection/2 })
	answers("after")
}

// Who connects and says nothing, or says it slowly, is shut out after a while, and others get in.
func TestConnectionsThatSayNothingAreClosed(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	const most = 20
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), fmt.Sprint("TOOLGRANT_MAX_CONNECTIONS=", most))
	server.start()
	server.awaitReady()
	http.DefaultClient.CloseIdleConnections()
	var ended sync.WaitGroup
	for _, door := range []struct{ address, first string }{{server.grpc, "PRI * HT"}, {server.web, "POST /toolgrant.v1.QuotaService/ConsumeQuota HTTP/1.1\r\nHost: localhost\r\nX"}} {
		for range most + 10 {
			conn, err := net.Dial("tcp", door.address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, door.first) // many are closed at once
			ended.Go(func() {
				_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
				if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
					t.Errorf("%s: a connection that says nothing is open after 30 s", door.address)
				}
			})
		}
		// One address has half of the places at most, so that others get in meanwhile.
		elsewhere := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		client, err := grpc.NewClient(server.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return elsewhere.DialContext(ctx, "tcp", address)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		if _, err := healthv1.NewHealthClient(client).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
			t.Errorf("from another address: %v", err)
		}
	}
	ended.Wait()
	await(t, "others get in", func() bool { return ready(server.web) == http.StatusOK })
	m := scrape(t, server.web)
	for _, protocol := range []string{"grpc", "http"} {
		if refused := m.of("toolgrant_connections_refused_total", protocol); refused < most+10-most/2 {
			t.Errorf("%s: %g connections were refused", protocol, refused)
		}
	}
}

// Watchers that do not read hold up nobody else.
func TestWatchersThatDoNotReadHoldUpNobody(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t))
	server.start()
	server.awaitReady()
	c := server.connect()
	large := world() // answers are larger than what flow control lets through
	for i, tool := range large.Tools {
		tool.Core, tool.Description = true, strings.Repeat(fmt.Sprint(i), 60_000)
	}
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: large}); err != nil {
		t.Fatal(err)
	}
	question := &v1.WatchToolsRequest{ChatId: "chat", UserId: "u", Surface: web, View: v1.ToolView_TOOL_VIEW_FULL}
	for range 32 {
		if _, err := c.WatchTools(ctx, question); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "all watch", func() bool { return scrape(t, server.web).of("toolgrant_watchers") == 32 })
	reader := server.connect()
	stream, err := reader.WatchTools(ctx, question, grpc.MaxCallRecvMsgSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		large.Tools[0].Title = fmt.Sprint("title ", i)
		if _, err := reader.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: large}); err != nil {
			t.Fatal(err)
		}
	}
}
