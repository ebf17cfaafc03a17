package grpcserver

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// approvalWatch is one stream of WatchApprovals.
type approvalWatch struct {
	server *approvalServer
	stream grpc.ServerStreamingServer[toolgrantv1.WatchApprovalsResponse]
	user   id.User
	// told is what was told last of each approval that may still change, and for a while of others, since one change
	// may be noticed twice.
	told map[id.Approval]toldApproval
	// unread are approvals that changed and could not be read yet.
	unread []id.Approval
	// begin says that the pending ones are to be told: at first, and when changes were lost.
	begin bool
}

type toldApproval struct {
	approval approval.Approval
	state    approval.State
	at       time.Time
}

// final tells whether nothing can become of the approval any more.
func (t *toldApproval) final() bool {
	return t.state != approval.Pending && t.state != approval.Approved
}

const (
	// approvalReadTimeout bounds each read of a stream, which has no limit of its own.
	approvalReadTimeout = 5 * time.Second
	// repeatable is how long after a change it may be noticed again; much longer than any poll takes.
	repeatable = time.Minute
)

func (s *approvalServer) WatchApprovals(r *toolgrantv1.WatchApprovalsRequest, stream grpc.ServerStreamingServer[toolgrantv1.WatchApprovalsResponse]) error {
	watcher := s.replica.WatchApprovals(id.User(r.GetUserId()))
	defer watcher.Close()
	w := &approvalWatch{server: s, stream: stream, user: id.User(r.GetUserId()), told: map[id.Approval]toldApproval{}, begin: true}
	if err := w.tell(); err != nil {
		return err
	}
	if err := stream.Send(&toolgrantv1.WatchApprovalsResponse{}); err != nil { // that was all that waits
		return err
	}
	checkpoint := time.NewTicker(s.checkpoint)
	defer checkpoint.Stop()
	due := w.nextExpiry()
	for {
		idle := false
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.replica.Stopped():
			return replica.ErrStopped
		case <-s.drain.of(stream.Context()):
			return replica.ErrStopped
		case <-watcher.Changed:
		case <-due:
		case <-checkpoint.C:
			idle = true
		}
		changed, lost := watcher.Take()
		w.unread, w.begin = append(w.unread, changed...), w.begin || lost
		err := w.tell()
		if f, ok := fault.As(err); ok && f.Kind == fault.Unavailable {
			due = time.After(retryInterval) // the database is away: nothing is known, so nothing is said
			continue
		}
		if err != nil {
			return err
		}
		if idle {
			w.forget()
			if err := stream.Send(&toolgrantv1.WatchApprovalsResponse{}); err != nil {
				return err
			}
		}
		due = w.nextExpiry()
	}
}

// tell reads what changed, or may have, and sends what stands otherwise than was told.
func (w *approvalWatch) tell() error {
	now := w.server.now()
	for name, told := range w.told {
		if !told.final() && (w.begin || told.approval.State(now) != told.state) {
			w.unread = append(w.unread, name)
		}
	}
	if len(w.unread) == 0 && !w.begin {
		return nil
	}
	slices.Sort(w.unread)
	w.unread = slices.Compact(w.unread)
	ctx, cancel := context.WithTimeout(w.stream.Context(), approvalReadTimeout)
	defer cancel()
	var pending []approval.Approval
	if w.begin {
		var err error
		if pending, err = w.pending(ctx, now); err != nil {
			return err
		}
	}
	changed, err := w.server.store.ApprovalsByID(ctx, w.unread)
	if err != nil {
		return err
	}
	w.unread, w.begin = nil, false
	for _, a := range append(pending, changed...) {
		if err := w.send(a); err != nil {
			return err
		}
	}
	return nil
}

// pending reads the approvals that wait, the oldest first.
func (w *approvalWatch) pending(ctx context.Context, now time.Time) ([]approval.Approval, error) {
	const batch = 1000
	var all []approval.Approval
	for after := (approval.Key{}); ; after = all[len(all)-1].Key() {
		some, err := w.server.store.Approvals(ctx, approval.Filter{State: approval.Pending, User: w.user}, after, now, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < batch {
			slices.Reverse(all)
			return all, nil
		}
	}
}

func (w *approvalWatch) send(a approval.Approval) error {
	now := w.server.now()
	state := a.State(now)
	if told, ok := w.told[a.ID]; ok && told.state == state {
		return nil
	}
	w.told[a.ID] = toldApproval{a, state, now}
	return w.stream.Send(&toolgrantv1.WatchApprovalsResponse{Approval: approvalToProto(&a, now)})
}

// nextExpiry is ready when time alone changes what was told; nil: never.
func (w *approvalWatch) nextExpiry() <-chan time.Time {
	var next time.Time
	now := w.server.now()
	for _, told := range w.told {
		if told.final() {
			continue
		}
		if at := told.approval.Expire(told.at); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return nil
	}
	return time.After(next.Sub(now))
}

// forget drops what will not be noticed again.
func (w *approvalWatch) forget() {
	now := w.server.now()
	for name, told := range w.told {
		if told.final() && now.Sub(told.at) > repeatable {
			delete(w.told, name)
		}
	}
}
