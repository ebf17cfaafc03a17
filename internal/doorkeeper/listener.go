// Package doorkeeper keeps those out, before they are understood, who would keep a server busy with nothing: too many
// connections, requests over HTTP that come byte by byte, and readers of answers who do not read.
package doorkeeper

import (
	"net"
	"net/netip"
	"sync"
)

// Listener accepts connections up to a number, and of one address up to half of it. What is too much is closed at
// once: whoever asks for it goes elsewhere or tries later, instead of waiting without a word.
type Listener struct {
	net.Listener
	most int

	mu      sync.Mutex
	open    int
	of      map[netip.Addr]int
	refused uint64
}

// NewListener returns a listener of at most so many connections at a time; 0: any number.
func NewListener(l net.Listener, most int) *Listener {
	return &Listener{Listener: l, most: most, of: map[netip.Addr]int{}}
}

// Stats tells how many connections are open, and how many were closed at once.
func (l *Listener) Stats() (open int, refused uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.refused
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := addressOf(conn)
		if !l.enter(from) {
			_ = conn.Close() // there is nothing to lose
			continue
		}
		return &connection{Conn: conn, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
	}
}

func (l *Listener) enter(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most > 0 && (l.open >= l.most || l.of[from] >= max(1, l.most/2)) {
		l.refused++
		return false
	}
	l.open++
	l.of[from]++
	return true
}

func (l *Listener) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[from]--; l.of[from] == 0 {
		delete(l.of, from)
	}
}

func addressOf(conn net.Conn) netip.Addr {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		address, _ := netip.AddrFromSlice(tcp.IP)
		return address.Unmap()
	}
	return netip.Addr{}
}

// connection tells its listener when it is closed.
type connection struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.leave()
	return c.Conn.Close()
}
