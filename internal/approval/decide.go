package approval

import (
	"fmt"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
)

const (
	onceGood = 10 * time.Minute     // how long a grant of one call holds, unless told otherwise
	longest  = 366 * 24 * time.Hour // a year
)

// Validate returns what is wrong with a decision whoever makes it, and whatever about.
func (d *Decision) Validate() error {
	var violations []fault.Violation
	told := func(field, description string) {
		violations = append(violations, fault.Violation{Field: field, Description: description})
	}
	switch {
	case d.Approve && d.Scope == "":
		told("scope", "value is required to grant")
	case !d.Approve && d.Scope != "":
		told("scope", "a refusal has no scope")
	}
	switch {
	case d.Scope == Until && d.Expire.IsZero():
		told("expire_time", "value is required for this scope")
	case !d.Approve && !d.Expire.IsZero():
		told("expire_time", "a refusal does not expire")
	}
	if len(violations) == 0 {
		return nil
	}
	return fault.Invalid(violations...)
}

// Decide returns the decision as it is to be written, at its Time. It returns nil if the same was decided before:
// who asks twice, or says what another said, is told how it stands. Anything else is refused once it is decided.
func (a *Approval) Decide(d Decision) (*Decision, error) {
	if was := a.Decision; was != nil {
		if was.Approve == d.Approve && was.Scope == d.Scope && was.Expire.Equal(d.within(was.Time).Expire) {
			return nil, nil
		}
		return nil, a.over(d.Time)
	}
	if a.State(d.Time) != Pending {
		return nil, a.over(d.Time)
	}
	if !d.Expire.IsZero() && (!d.Expire.After(d.Time) || d.Expire.After(d.Time.Add(longest))) {
		return nil, fault.Invalid(fault.Violation{Field: "expire_time", Description: "must be in the future, and at most a year ahead"})
	}
	d = d.within(d.Time)
	return &d, nil
}

// within gives a decision that was made at an instant its default end.
func (d Decision) within(made time.Time) Decision {
	if d.Scope == Once && d.Expire.IsZero() {
		d.Expire = made.Add(onceGood)
	}
	return d
}

// Revoke returns the revocation as it is to be written, or nil if the grant was taken back before. Only what is
// granted can be.
func (a *Approval) Revoke(r Revocation) (*Revocation, error) {
	switch a.State(r.Time) {
	case Approved:
		return &r, nil
	case Revoked:
		return nil, nil
	}
	return nil, a.over(r.Time)
}

// Spend tells whether letting a call through uses the grant up, which has to be written then. What is not granted
// (any more) lets nothing through.
func (a *Approval) Spend(now time.Time) (bool, error) {
	switch a.State(now) {
	case Used:
		return false, nil
	case Approved:
		return a.Decision.Scope == Once, nil
	}
	return false, a.over(now)
}

// over refuses to change what is not open to it any more, or not yet.
func (a *Approval) over(now time.Time) error {
	message := fmt.Sprintf("the approval is %s", a.State(now))
	if a.Decision != nil {
		message += fmt.Sprintf(": decided by %s at %s", a.Decision.By, a.Decision.Time.Format(time.RFC3339))
	}
	return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonApprovalDecided, Message: message}
}
