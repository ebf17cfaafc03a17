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

// relay passes connections on to PostgreSQL, until it falls silent: then it accepts them and passes on
// nothing, as a network does that loses all packets.
type relay struct {
	network, address string // of PostgreSQL
	silent           atomic.Bool
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	r.network, r.address = pgconn.NetworkAddress(config.Host, config.Port)
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
	through := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: listener.Addr().String(),
		Path: config.Database, RawQuery: "sslmode=disable&connect_timeout=1"}
	return r, through.String()
}

func (r *relay) accept(conn net.Conn) {
	database, err := net.Dial(r.network, r.address)
	if err != nil {
		_ = conn.Close()
		return
	}
	r.mu.Lock()
	r.open = append(r.open, conn, database)
	r.mu.Unlock()
	for _, way := range [][2]net.Conn{{conn, database}, {database, conn}} {
		go func() {
			_, _ = io.Copy(lossy{way[0], &r.silent}, way[1])
			_ = way[0].Close()
		}()
	}
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
}

// lossy writes nothing while it is silent.
type lossy struct {
	io.Writer
	silent *atomic.Bool
}

func (l lossy) Write(p []byte) (int, error) {
	if l.silent.Load() {
		return len(p), nil
	}
	return l.Writer.Write(p)
}
