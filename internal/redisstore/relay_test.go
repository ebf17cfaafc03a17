package redisstore

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// relay passes connections on to Redis. While it is deaf, it loses what Redis answers.
type relay struct {
	deaf atomic.Bool
	mu   sync.Mutex
	open []net.Conn
}

func newRelay(t *testing.T, of string) (*relay, string) {
	t.Helper()
	redis, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, address := &relay{}, redis.Host
	t.Cleanup(func() { _ = listener.Close(); r.cut() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			r.mu.Lock()
			r.open = append(r.open, client, server)
			r.mu.Unlock()
			go r.pass(server, client, nil)
			go r.pass(client, server, &r.deaf)
		}
	}()
	redis.Host = listener.Addr().String()
	return r, redis.String()
}

func (r *relay) pass(to, from net.Conn, loses *atomic.Bool) {
	defer func() { _ = to.Close() }()
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if loses != nil && loses.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cut breaks all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.open {
		_ = conn.Close()
	}
	r.open = nil
}
