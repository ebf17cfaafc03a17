package mcp

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions counts what clients keep open: sessions of the older protocol, and streams of changes of the newer one. Each
// costs a watch, and memory.
type sessions struct {
	all, perUser int // the most

	mu    sync.Mutex
	users map[string]map[any]*session // by what is open
	total int
}

// session is something that is open.
type session struct {
	server  *mcp.Server // of a session; nil: a stream, which tells when it ends
	settled bool        // the request that opens it is answered
}

func newSessions(all, perUser int) *sessions {
	return &sessions{all: all, perUser: perUser, users: map[string]map[any]*session{}}
}

// room tells whether a user may open something more. The lock is held.
func (s *sessions) room(user string) bool {
	s.sweep(user)
	if s.total >= s.all {
		for other := range s.users {
			s.sweep(other)
		}
	}
	return s.total < s.all && len(s.users[user]) < s.perUser
}

// open notes that something is open, if there is room.
func (s *sessions) open(user string, key any, server *mcp.Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.room(user) {
		return false
	}
	if s.users[user] == nil {
		s.users[user] = map[any]*session{}
	}
	s.users[user][key] = &session{server: server}
	s.total++
	return true
}

// close notes that something is not open any more.
func (s *sessions) close(user string, key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(user, key)
}

func (s *sessions) remove(user string, key any) {
	if _, there := s.users[user][key]; !there {
		return
	}
	delete(s.users[user], key)
	s.total--
	if len(s.users[user]) == 0 {
		delete(s.users, user)
	}
}

// sweep forgets the sessions of a user that are gone: nobody tells when they end. The lock is held.
func (s *sessions) sweep(user string) {
	for key, one := range s.users[user] {
		if one.settled && !connected(one.server) {
			s.remove(user, key)
		}
	}
}

// settle notes that the request that opens a session is answered: now it is there, or it never will be.
func (s *sessions) settle(user string, key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.users[user][key]; one != nil {
		one.settled = true
	}
	s.sweep(user)
}

func connected(server *mcp.Server) bool {
	for range server.Sessions() {
		return true
	}
	return false
}
