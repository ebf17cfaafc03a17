package call

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// Late is how long after the end of its lease a call may be reported.
	Late = 15 * time.Minute
	// RememberReported is how long it is known how a call was reported.
	RememberReported = time.Hour
	// maxRemembered bounds how many calls a node remembers.
	maxRemembered = 1 << 16
)

// Shared is where the nodes' memories have in common what other nodes may be asked for.
type Shared interface {
	// Put keeps a record, soon. It does not wait.
	Put(Written)
	// Get finds a record; nil: there is none.
	Get(context.Context, id.Call) (*Record, error)
	// Report writes down how a call was reported, unless that was done before: then it returns what was written then.
	Report(ctx context.Context, call id.Call, report string) (before string, err error)
}

// Memory remembers the calls that a node allowed: the last 65,536, each until 15 minutes after the end of its lease,
// and for an hour how they were reported. What is forgotten here, or was allowed by another node, is looked for in the
// Shared, which is told of calls that nothing else remembers: the reservation of quotas is a memory of its own.
type Memory struct {
	shared Shared

	mu    sync.Mutex
	calls *simplelru.LRU[id.Call, *remembered]
}

// remembered is a call as it is written down: there are many of them, and the garbage collector looks at each string.
type remembered struct {
	text   string
	report string // empty: not yet
	until  int64  // Unix milliseconds
}

// NewMemory returns an empty memory. Without a Shared the node is alone.
func NewMemory(shared Shared) *Memory {
	calls, err := simplelru.NewLRU[id.Call, *remembered](maxRemembered, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return &Memory{shared: shared, calls: calls}
}

// find returns what this node remembers. The caller holds mu.
func (m *Memory) find(call id.Call) *remembered {
	held, ok := m.calls.Get(call)
	if !ok {
		return nil
	}
	if time.Now().UnixMilli() > held.until {
		m.calls.Remove(call)
		return nil
	}
	return held
}

// Check refuses a call whose id this node knows for another one, or for one that was reported.
func (m *Memory) Check(call id.Call, content string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(call).check(call, content)
}

func (h *remembered) check(call id.Call, content string) error {
	switch {
	case h == nil:
		return nil
	case contentOf(h.text) != content:
		return Reused(call)
	case h.report != "":
		return Over(call)
	}
	return nil
}

// Remember remembers a call that was allowed. Of two calls of one id at a time one is refused, unless they are the same. A
// call that its reservation remembers is not shared besides.
func (m *Memory) Remember(w Written, reserved bool) error {
	m.mu.Lock()
	held := m.find(w.Call)
	if err := held.check(w.Call, contentOf(w.Text)); err != nil {
		m.mu.Unlock()
		return err
	}
	m.calls.Add(w.Call, &remembered{text: w.Text, until: time.Now().Add(w.Keep).UnixMilli()})
	m.mu.Unlock()
	if m.shared != nil && !reserved && held == nil {
		m.shared.Put(w)
	}
	return nil
}

// Find returns a call that was allowed, by whichever node; nil: there is none, or it is remembered by its reservation.
func (m *Memory) Find(ctx context.Context, call id.Call) (*Record, error) {
	m.mu.Lock()
	held := m.find(call)
	m.mu.Unlock()
	if held != nil {
		return DecodeRecord(call, held.text)
	}
	if m.shared == nil {
		return nil, nil
	}
	return m.shared.Get(ctx, call)
}

// Report remembers how a call went. It tells whether the same was reported before, and refuses another report. While
// the Shared is away this node's word is enough for calls that it allowed itself.
func (m *Memory) Report(ctx context.Context, r *Record, report string) (repeated bool, err error) {
	m.mu.Lock()
	known := m.find(r.Call).reported() // what is reported here meanwhile says nothing about who was the first
	m.mu.Unlock()
	before := ""
	if m.shared != nil {
		before, err = m.shared.Report(ctx, r.Call, report)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.find(r.Call)
	switch {
	case known != "":
		before = known
	case held == nil && err != nil:
		return false, err
	case m.shared == nil || err != nil:
		before = held.reported()
	}
	if held == nil {
		held = &remembered{text: r.Encode()}
	}
	if before == "" || before == report {
		held.report, held.until = report, time.Now().Add(RememberReported).UnixMilli()
		m.calls.Add(r.Call, held)
		return before != "", nil
	}
	return false, Reported(r.Call)
}

// reported is how a call was reported, as far as this node knows.
func (h *remembered) reported() string {
	if h == nil {
		return ""
	}
	return h.report
}

// Reused is what a call's id is refused with that was used for another call.
func Reused(call id.Call) error {
	return &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused, Resource: "call", ID: string(call),
		Message: fmt.Sprintf("call_id %q was used before, for another call", call)}
}

// Over is what a call is refused with that was made already.
func Over(call id.Call) error {
	return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonCallReported,
		Message: fmt.Sprintf("call %q was made and reported; another one needs another call_id", call)}
}

// Reported is what a report is refused with that contradicts an earlier one.
func Reported(call id.Call) error {
	return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonCallReported,
		Message: fmt.Sprintf("call %q was reported before, with another outcome or cost", call)}
}

// Unknown is what a report is refused with of a call that was not allowed, or was forgotten.
func Unknown(call id.Call) error {
	missing := fault.Missing("call", string(call))
	missing.Message = fmt.Sprintf("no call %q was allowed, or it was forgotten since", call)
	return missing
}
