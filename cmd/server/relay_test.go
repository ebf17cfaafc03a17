package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// relay passes connections on, until it falls silent: then it accepts them and passes on nothing, as a network does that
// loses all packets. Or it loses answers only.
type relay struct {
	network, address string // of the server
	silent, deaf     atomic.Bool
	mu               sync.Mutex
	open             []net.Conn
}

// newRelay returns a relay to a database, and the database's URL through it. Who connects there waits a second
// for an answer.
func newRelay(t *testing.T, databaseURL string) (*relay, string) {
	t.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	r, here := relayTo(t, network, address)
	through := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: here,
		Path: config.Database, RawQuery: "sslmode=disable&connect_timeout=1"}
	return r, through.String()
}

// relayTo returns a relay to a server, and where it listens.
func relayTo(t *testing.T, network, address string) (r *relay, here string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = &relay{network: network, address: address}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.accept(conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
		r.cut()
	})
	return r, listener.Addr().String()
}

func (r *relay) accept(conn net.Conn) {
	server, err := net.Dial(r.network, r.address)
	if err != nil {
		_ = conn.Close()
		return
	}
	r.mu.Lock()
	r.open = append(r.open, conn, server)
	r.mu.Unlock()
	pass := func(to, from net.Conn, lost ...*atomic.Bool) {
		_, _ = io.Copy(lossy{to, lost}, from)
		_ = to.Close()
	}
	go pass(server, conn, &r.silent)
	go pass(conn, server, &r.silent, &r.deaf)
}

// cut breaks all connections. Who connects again finds the relay as silent as it is.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.open {
		_ = conn.Close()
	}
	r.open = nil
}

// speak ends the silence. Connections that lost something break.
func (r *relay) speak() {
	r.cut()
	r.silent.Store(false)
	r.deaf.Store(false)
}

// lossy writes nothing while one of these is true.
type lossy struct {
	io.Writer
	lost []*atomic.Bool
}

func (l lossy) Write(p []byte) (int, error) {
	for _, lost := range l.lost {
		if lost.Load() {
			return len(p), nil
		}
	}
	return l.Writer.Write(p)
}
