package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Many callers at once are admitted exactly as often as the limit says; half of them ask twice at the same time.
func TestLedgerAdmitsExactlyTheLimit(t *testing.T) {
	onServers(t, func(t *testing.T, s *suite) {
		const callers, each, limit = 64, 8, 200
		for name, window := range map[string]quota.Window{"fixed": fixed(time.Hour), "daily": daily(""), "bucket": bucketOf(0.001), "places": {}} {
			rule := limited(name, quota.UnitCalls, limit, window)
			if name == "places" {
				rule.Unit = quota.UnitConcurrentCalls
			}
			other := limited("other", quota.UnitTokens, 1e9, fixed(time.Minute))
			var admitted sync.Map
			var group sync.WaitGroup
			for caller := range callers {
				group.Go(func() {
					for i := range each {
						lease := time.Hour
						if i%2 == 0 && name != "places" {
							lease = 0
						}
						o := operation(fmt.Sprint(name, caller/2, "-", i), 1, lease, rule, other) // two callers share it
						d, err := s.Take(testkit.Context(t), o)
						if err != nil {
							t.Error(err)
						}
						if d.Admitted {
							admitted.Store(o.ID, true)
						}
					}
				})
			}
			group.Wait()
			count := int64(0)
			admitted.Range(func(any, any) bool { count++; return true })
			state := s.state(rule)
			if count != limit || state.Used+state.Held != limit {
				t.Errorf("%s: %d admitted; %+v", name, count, state)
			}
		}
	})
}

// What operations and answers mean to one rule of five calls.
type historyInput struct {
	kind string // reserve, commit, release, states
	name string
}

type historyOutput struct {
	admitted, repeated, failed bool
	used, held                 int64
}

type historyState struct {
	used, held int64
	states     string // of operations, by number: - not there, H held, C committed, R released
}

func step(state, input, output any) (bool, any) {
	s, in, out := state.(historyState), input.(historyInput), output.(historyOutput)
	number := int(in.name[0] - 'a')
	now := s.states[number]
	become := func(b byte) { s.states = s.states[:number] + string(b) + s.states[number+1:] }
	switch {
	case in.kind == "states":
	case in.kind == "reserve" && now != '-':
		return out.admitted && out.repeated && out.used == s.used && out.held == s.held, s
	case in.kind == "reserve" && s.used+s.held == 5:
		return !out.admitted && out.used == s.used && out.held == s.held, s
	case in.kind == "reserve":
		become('H')
		s.held++
	case now == '-' || in.kind == "commit" && now == 'R' || in.kind == "release" && now == 'C':
		return out.failed, s
	case now != 'H':
		return out.repeated && out.used == s.used && out.held == s.held, s
	case in.kind == "commit":
		become('C')
		s.held--
		s.used++
	default:
		become('R')
		s.held--
	}
	return !out.failed && !out.repeated && out.used == s.used && out.held == s.held, s
}

// Callers see one order of what all did together.
func TestLedgerIsLinearizable(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		rule := limited("r", quota.UnitCalls, 5, fixed(time.Hour))
		for round := range 20 {
			history := record(testkit.Context(t), t, s, fmt.Sprint("u", round), rule)
			empty := historyState{states: "----------"}
			verdict := porcupine.CheckOperationsTimeout(porcupine.Model{Init: func() any { return empty }, Step: step}, history, 2*time.Minute)
			if verdict != porcupine.Ok {
				t.Fatalf("%s: %+v", verdict, history)
			}
		}
	})
}

// record runs eight clients, which share ten operations.
func record(ctx context.Context, t *testing.T, s *suite, user string, rule quota.Limited) []porcupine.Operation {
	var mu sync.Mutex
	var history []porcupine.Operation
	var clock atomic.Int64
	var group sync.WaitGroup
	for client := range 8 {
		group.Go(func() {
			for i, kind := range []string{"reserve", "commit", "states", "reserve", "release", "commit"} {
				in := historyInput{kind, string(rune('a' + (client*3+i*i)%10))}
				call := clock.Add(1)
				out := perform(ctx, t, s, user, rule, in)
				back := clock.Add(1)
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return history
}

func perform(ctx context.Context, t *testing.T, s *suite, user string, rule quota.Limited, in historyInput) historyOutput {
	o := operation(user+in.name, 1, time.Hour, rule)
	o.User = "u" // of all rounds: their own rules tell them apart
	o.Rules[0].ID = rule.ID + "." + id.Quota(user)
	var d quota.Decision
	var err error
	switch in.kind {
	case "reserve":
		d, err = s.Take(ctx, o)
	case "commit":
		d, err = s.Commit(ctx, o.ID, nil)
	case "release":
		d, err = s.Release(ctx, o.ID)
	default:
		d.States, err = s.States(ctx, o.User, o.Rules)
		if err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		return historyOutput{failed: true}
	}
	return historyOutput{admitted: d.Admitted, repeated: d.Repeated, used: d.States[0].Used, held: d.States[0].Held}
}
