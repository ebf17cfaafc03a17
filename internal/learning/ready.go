package learning

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/toolgrant/toolgrant/internal/discovery"
)

const (
	// maxReady is how many histories of users and groups are kept ready.
	maxReady = 4096
	// maxReadyRequests bounds their requests together, of which each takes some hundred bytes.
	maxReadyRequests = 524_288
)

// ready keeps histories that were asked for lately. Others are made anew, alike.
type ready struct {
	mu        sync.Mutex
	histories *simplelru.LRU[string, *discovery.History]
	requests  int
}

func newReady() *ready {
	r := &ready{}
	histories, err := simplelru.NewLRU(maxReady, func(_ string, h *discovery.History) { r.requests -= h.Len() })
	if err != nil {
		panic(err) // the size is positive
	}
	r.histories = histories
	return r
}

// get returns a history that is kept, or the one that is made now. The last one that was made is kept, whatever its size.
func (r *ready) get(key string, make func() *discovery.History) *discovery.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.histories.Get(key); ok {
		return h
	}
	h := make()
	r.requests += h.Len()
	r.histories.Add(key, h)
	for r.requests > maxReadyRequests && r.histories.Len() > 1 {
		r.histories.RemoveOldest()
	}
	return h
}
