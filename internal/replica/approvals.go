package replica

import (
	"maps"
	"slices"
	"sync"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/id"
)

// approvalWatchers is who wants to know of approvals. They are few, and approvals change at the pace of people, so
// each change is shown to all.
type approvalWatchers struct {
	mu  sync.Mutex
	all map[*ApprovalWatcher]struct{}
}

// ApprovalWatcher is told which approvals changed.
type ApprovalWatcher struct {
	// Changed holds one signal at most; Take says what changed.
	Changed <-chan struct{}

	changed chan struct{}
	replica *Replica
	user    id.User

	mu    sync.Mutex
	names map[id.Approval]struct{}
	lost  bool
}

// maxUntaken bounds what is remembered for a watcher that does not take it.
const maxUntaken = 10_000

// WatchApprovals registers a watcher of a user's approvals; of all, if user is empty. What changed before is not
// told, so look at the approvals after it.
func (r *Replica) WatchApprovals(user id.User) *ApprovalWatcher {
	w := &ApprovalWatcher{changed: make(chan struct{}, 1), replica: r, user: user, names: map[id.Approval]struct{}{}}
	w.Changed = w.changed
	r.approvalWatchers.mu.Lock()
	defer r.approvalWatchers.mu.Unlock()
	if r.approvalWatchers.all == nil {
		r.approvalWatchers.all = map[*ApprovalWatcher]struct{}{}
	}
	r.approvalWatchers.all[w] = struct{}{}
	return w
}

// Close ends the watch.
func (w *ApprovalWatcher) Close() {
	w.replica.approvalWatchers.mu.Lock()
	defer w.replica.approvalWatchers.mu.Unlock()
	delete(w.replica.approvalWatchers.all, w)
}

// Take returns what changed since it was last asked, or that not all of it is known.
func (w *ApprovalWatcher) Take() (names []id.Approval, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, lost = slices.Sorted(maps.Keys(w.names)), w.lost
	clear(w.names)
	w.lost = false
	return names, lost
}

func (s *approvalWatchers) tell(changed []approval.Ref, lost bool) {
	if len(changed) == 0 && !lost {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.all {
		w.tell(changed, lost)
	}
}

func (w *ApprovalWatcher) tell(changed []approval.Ref, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.names)
	for _, ref := range changed {
		if w.user == "" || w.user == ref.User {
			w.names[ref.ID] = struct{}{}
		}
	}
	if len(w.names) > maxUntaken {
		clear(w.names)
		lost = true
	}
	w.lost = w.lost || lost
	if len(w.names) == before && !lost {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
