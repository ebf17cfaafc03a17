// Package checkup is what is found of the things that a server rests on: for people who set one up, or wonder what is
// wrong with it.
package checkup

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// Level says how bad a finding is.
type Level int

// The levels, from good to bad.
const (
	// OK is as it should be.
	OK Level = iota
	// Note is what works, and may surprise.
	Note
	// Bad is what keeps a server from serving, or from keeping what it promises.
	Bad
)

// String is how a level is printed.
func (l Level) String() string { return [...]string{"ok", "note", "BAD"}[l] }

// Finding is one thing that was looked at.
type Finding struct {
	Level Level
	// What was looked at: "PostgreSQL: clock".
	What string
	// Detail is what was found.
	Detail string
	// Advice is what to do about it; empty: nothing.
	Advice string
}

// Report is what was found, in the order of looking.
type Report []Finding

// OK adds what is as it should be.
func (r *Report) OK(what, detail string, values ...any) {
	*r = append(*r, Finding{What: what, Detail: fmt.Sprintf(detail, values...)})
}

// Note adds what may surprise.
func (r *Report) Note(what, detail, advice string) {
	*r = append(*r, Finding{Note, what, detail, advice})
}

// Bad adds what is wrong.
func (r *Report) Bad(what, detail, advice string) {
	*r = append(*r, Finding{Bad, what, detail, advice})
}

// Worst is the level of the worst finding.
func (r Report) Worst() Level {
	if len(r) == 0 {
		return OK
	}
	return slices.MaxFunc(r, func(a, b Finding) int { return cmp.Compare(a.Level, b.Level) }).Level
}

// Print writes a line for each finding, and one with the advice below it.
func (r Report) Print(w io.Writer) error {
	for _, f := range r {
		if _, err := fmt.Fprintf(w, "%-4s  %s: %s\n", f.Level, f.What, f.Detail); err != nil {
			return err
		}
		if f.Advice != "" {
			if _, err := fmt.Fprintf(w, "      → %s\n", f.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}

// The bounds of clocks: the first may change when memberships begin and end as users see it, the second breaks more.
const (
	noticeableSkew = 500 * time.Millisecond
	badSkew        = 5 * time.Second
)

// Clock adds how far another machine's clock is from this one's. It was read between two instants of this one's.
func (r *Report) Clock(what string, before, theirs, after time.Time) {
	skew := theirs.Sub(before.Add(after.Sub(before) / 2)).Round(time.Millisecond)
	uncertain := after.Sub(before) / 2
	detail := fmt.Sprintf("%s ahead of this machine's (±%s)", skew, uncertain.Round(time.Microsecond))
	const advice = "keep the clocks of all machines right by NTP: memberships, approvals and windows of quotas begin and end by them"
	switch off := max(skew.Abs()-uncertain, 0); {
	case off > badSkew:
		r.Bad(what, detail, advice)
	case off > noticeableSkew:
		r.Note(what, detail, advice)
	default:
		r.OK(what, "%s", detail)
	}
}
