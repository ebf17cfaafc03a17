package grpcserver

import (
	"hash/maphash"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// watch is one stream of WatchTools. It remembers of the answer that it told last what it rested on and a
// fingerprint, so that an idle stream takes little memory. A slow reader blocks its own stream only: what
// changes meanwhile is one change when it reads again.
type watch struct {
	server *entitlementServer
	asked  *toolgrantv1.WatchToolsRequest
	stream grpc.ServerStream
	basis  basis
	told   uint64 // fingerprint of the body
	// revision is what was told last: nothing older may follow, not even after an answer that was newer than
	// the memory.
	revision string
}

var fingerprintSeed = maphash.MakeSeed()

// retryInterval is how long a watcher waits after a failure. What woke it may not come again.
const retryInterval = time.Second

// WatchTools implements the RPC.
func (s *entitlementServer) WatchTools(r *toolgrantv1.WatchToolsRequest, stream grpc.ServerStreamingServer[toolgrantv1.WatchToolsResponse]) error {
	watcher := s.replica.Watch(id.User(r.GetUserId()), id.Chat(r.GetChatId()))
	defer watcher.Close()
	w := &watch{server: s, asked: r, stream: stream}
	if err := w.tell(consistencyFromProto(r.GetConsistency()), true); err != nil {
		return err
	}
	checkpoint := time.NewTicker(s.checkpoint)
	defer checkpoint.Stop()
	due := w.nextChange()
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
		err := w.tell(replica.Consistency{AtLeastAsFresh: w.revision}, idle)
		if f, ok := fault.As(err); ok && f.Kind == fault.Unavailable {
			due = time.After(retryInterval) // the database is away: nothing is known, so nothing is said
			continue
		}
		if err != nil {
			return err
		}
		due = w.nextChange()
	}
}

// nextChange is ready when time alone may change the answer; nil: never.
func (w *watch) nextChange() <-chan time.Time {
	if w.basis.until.IsZero() {
		return nil
	}
	return time.After(w.basis.until.Sub(w.server.now()))
}

// tell sends the answer if it is not what was told last, or else, if asked to, a checkpoint.
func (w *watch) tell(c replica.Consistency, checkpoint bool) error {
	first := w.basis.world == nil
	ctx := w.stream.Context()
	surface := surfaceFromProto(w.asked.GetSurface())
	facts, err := w.server.replica.Facts(ctx, id.Chat(w.asked.GetChatId()), id.User(w.asked.GetUserId()), surface, c)
	if err != nil {
		return err
	}
	asked, _, err := facts.Ask(surface, nil, w.server.now())
	if err != nil {
		return err
	}
	if first || !w.basis.holds(&facts, &asked) {
		answer, err := w.answer(&facts, &asked)
		if err != nil {
			return err
		}
		if facts.Expired() { // it waited for its turn for too long
			return w.tell(c, checkpoint)
		}
		fingerprint := maphash.Bytes(fingerprintSeed, answer.body)
		changed := first || fingerprint != w.told
		w.basis, w.told = answer.basis, fingerprint
		if changed {
			w.revision = facts.Token
			return w.stream.SendMsg(answer.message(&facts))
		}
	}
	if !checkpoint || facts.Stale {
		return nil
	}
	w.revision = facts.Token
	return w.stream.SendMsg(encoded{mem.SliceBuffer(appendTrue(appendString(nil, revisionField, facts.Token), checkpointField))})
}

// answer makes the answer. Watchers take turns, since one change may wake all of them, and those who ask for
// an answer come first.
func (w *watch) answer(f *replica.Facts, q *effective.Question) (*answer, error) {
	if err := w.server.watching.Acquire(w.stream.Context(), 1); err != nil {
		return nil, err
	}
	defer w.server.watching.Release(1)
	return w.server.answers.make(w.stream.Context(), f, q, w.asked.GetView())
}
