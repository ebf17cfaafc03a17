package replica

import (
	"sync"

	"github.com/toolgrant/toolgrant/internal/id"
)

// watchers is who wants to know of changes.
type watchers struct {
	mu    sync.Mutex
	users map[id.User]set
	chats map[id.Chat]set
	count int
}

type set map[*Watcher]struct{}

// Watcher is told when what a question about a user and a chat rests on may have changed.
type Watcher struct {
	// Changed holds one signal at most: changes that nobody looked at are one change.
	Changed <-chan struct{}

	changed chan struct{}
	replica *Replica
	user    id.User
	chat    id.Chat
}

// Watch registers a watcher. What changed before is not told, so look at the facts after it.
func (r *Replica) Watch(user id.User, chat id.Chat) *Watcher {
	w := &Watcher{changed: make(chan struct{}, 1), replica: r, user: user, chat: chat}
	w.Changed = w.changed
	r.watchers.mu.Lock()
	defer r.watchers.mu.Unlock()
	add(r.watchers.users, user, w)
	add(r.watchers.chats, chat, w)
	r.watchers.count++
	return w
}

// Close ends the watch. It must be called once.
func (w *Watcher) Close() {
	all := &w.replica.watchers
	all.mu.Lock()
	defer all.mu.Unlock()
	remove(all.users, w.user, w)
	remove(all.chats, w.chat, w)
	all.count--
}

func add[K comparable](m map[K]set, key K, w *Watcher) {
	if m[key] == nil {
		m[key] = set{}
	}
	m[key][w] = struct{}{}
}

func remove[K comparable](m map[K]set, key K, w *Watcher) {
	delete(m[key], w)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}

func (w *Watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (s *watchers) wake(users []id.User, chats []id.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, user := range users {
		for w := range s.users[user] {
			w.wake()
		}
	}
	for _, chat := range chats {
		for w := range s.chats[chat] {
			w.wake()
		}
	}
}

func (s *watchers) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, watching := range s.users {
		for w := range watching {
			w.wake()
		}
	}
}
