package grpcserver

import (
	"context"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// maxRefusals bounds how many refused calls a node remembers.
const maxRefusals = 1 << 14

// refusals writes refusals of risky calls into the audit log, each once, however often the call is asked for. (A node
// that forgot it, or another one, writes it again.)
type refusals struct {
	store CallStore

	mu   sync.Mutex
	told *simplelru.LRU[refusal, struct{}]
}

type refusal struct {
	call   id.Call
	reason call.Reason
}

func newRefusals(store CallStore) *refusals {
	told, err := simplelru.NewLRU[refusal, struct{}](maxRefusals, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return &refusals{store: store, told: told}
}

// refused tells whether the audit log must tell of the answer. That a person is asked is in it already.
func (c *deciding) refused() bool {
	return c.answer.Decision == call.Deny && c.answer.Risk == catalog.RiskHigh && !c.request.GetDryRun()
}

// tell writes a refusal down before it is answered. If that fails, so does the call.
func (r *refusals) tell(ctx context.Context, c *deciding) error {
	key := refusal{c.question.Call, c.answer.Reason}
	r.mu.Lock()
	told := r.told.Contains(key)
	r.mu.Unlock()
	if told {
		return nil
	}
	ctx, err := identify(ctx)
	if err != nil {
		return err
	}
	err = r.store.RefuseCall(ctx, audit.Refusal{Call: c.question.Call, Chat: c.question.Chat, User: c.rests.User, Tool: c.answer.Tool,
		Function: c.answer.Function, Reason: string(c.answer.Reason), Message: c.answer.Message, Approval: c.answer.Approval})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.told.Add(key, struct{}{})
	r.mu.Unlock()
	return nil
}
