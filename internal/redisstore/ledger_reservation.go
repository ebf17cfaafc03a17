package redisstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// reservation is what is written down to settle it by: the rules as they were, whatever they are by then.
type reservation struct {
	Tool   id.Tool        `json:"o"`
	Calls  int64          `json:"c,omitempty"`
	Tokens int64          `json:"t,omitempty"`
	Note   string         `json:"n,omitempty"`
	Rules  []reservedRule `json:"r,omitempty"`
}

type reservedRule struct {
	ID     id.Quota     `json:"i"`
	System bool         `json:"s,omitempty"`
	Unit   quota.Unit   `json:"u"`
	Units  int64        `json:"n,omitempty"` // reserved
	Limit  int64        `json:"l,omitempty"`
	Keep   bool         `json:"k,omitempty"` // charged if abandoned
	Fixed  int64        `json:"f,omitempty"` // milliseconds
	Period quota.Period `json:"p,omitempty"`
	Zone   string       `json:"z,omitempty"`
	Refill float64      `json:"b,omitempty"`
}

func newReservation(operation quota.Operation) *reservation {
	r := &reservation{Tool: operation.Tool, Calls: operation.Cost.Calls, Tokens: operation.Cost.Tokens, Note: operation.Note, Rules: make([]reservedRule, len(operation.Rules))}
	for i, rule := range operation.Rules {
		w := rule.Window
		one := reservedRule{ID: rule.ID, System: rule.Scope == quota.ScopeSystem, Unit: rule.Unit, Units: operation.Cost.In(rule.Unit), Limit: rule.Own,
			Keep: rule.OnAbandoned == quota.AbandonedCharge, Fixed: w.Fixed.Milliseconds()}
		if w.Calendar != nil {
			one.Period, one.Zone = w.Calendar.Period, w.Calendar.Zone
		}
		if w.TokenBucket != nil {
			one.Refill = w.TokenBucket.RefillPerSecond
		}
		r.Rules[i] = one
	}
	return r
}

func (r *reservation) encode() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// recordOf returns what encode returned of what take.lua wrote: after four words. Reserved is false if the operation is
// not known, or is no reservation.
func recordOf(text string) (record string, reserved bool) {
	words := strings.SplitN(text, " ", 5)
	if len(words) != 5 || words[0] == "T" {
		return "", false
	}
	return words[4], true
}

func decodeReservation(record string) (*reservation, error) {
	r := &reservation{}
	if err := json.Unmarshal([]byte(record), r); err != nil {
		return nil, fmt.Errorf("what is written down of the reservation: %w", err)
	}
	return r, nil
}

// settled tells what it came to.
func (r *reservation) settled(user id.User, mode string, tokens int64) quota.Settled {
	s := quota.Settled{User: user, Tool: r.Tool, Note: r.Note}
	if mode == "C" {
		s.Cost = quota.Cost{Calls: r.Calls, Tokens: tokens}
	}
	return s
}

// limited returns the rules as they were.
func (r *reservation) limited() []quota.Limited {
	rules := make([]quota.Limited, len(r.Rules))
	for i, one := range r.Rules {
		l := quota.Limited{Own: one.Limit}
		l.ID, l.Scope, l.Unit, l.Limit = one.ID, quota.ScopeUser, one.Unit, one.Limit
		if one.System {
			l.Scope = quota.ScopeSystem
		}
		l.Window.Fixed = time.Duration(one.Fixed) * time.Millisecond
		l.OnAbandoned = quota.AbandonedGiveBack
		if one.Keep {
			l.OnAbandoned = quota.AbandonedCharge
		}
		if one.Period != "" {
			l.Window.Calendar = &quota.Calendar{Period: one.Period, Zone: one.Zone}
		}
		if one.Refill > 0 {
			l.Window.TokenBucket = &quota.TokenBucket{RefillPerSecond: one.Refill, Burst: one.Limit}
		}
		rules[i] = l
	}
	return rules
}

// cost is what is charged in the end. Only tokens can become more or less; a place is left.
func (r *reservedRule) cost(mode string, tokens int64) int64 {
	switch {
	case mode == "R" || r.Unit == quota.UnitConcurrentCalls:
		return 0
	case r.Unit == quota.UnitTokens:
		return tokens
	default:
		return r.Units
	}
}

// fingerprint tells operations of another content under the same id apart. Rules are not part of it: they may change
// while a caller repeats.
func fingerprint(operation quota.Operation) string {
	text := append(make([]byte, 0, 256), operation.Tool...)
	for _, n := range []int64{operation.Cost.Calls, operation.Cost.Tokens, operation.Lease.Milliseconds()} {
		text = strconv.AppendInt(append(text, ' '), n, 10)
	}
	if operation.Note != "" {
		text = append(append(text, ' '), operation.Note...)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
