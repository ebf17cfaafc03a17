package audit

import (
	"cmp"
	"encoding/hex"
	"time"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// approvalState is an approval as the log tells it. What a call was to do may be private: of its arguments there is a
// fingerprint.
type approvalState struct {
	ID         id.Approval    `json:"approval_id"`
	Call       id.Call        `json:"call_id"`
	Chat       id.Chat        `json:"chat_id"`
	User       id.User        `json:"user_id"`
	Tool       id.Tool        `json:"tool_id"`
	Function   string         `json:"function"`
	Digest     string         `json:"arguments_sha256"`
	State      approval.State `json:"state"`
	Scope      approval.Scope `json:"scope"`
	ExpireTime string         `json:"expire_time"`
}

func approvalStateOf(a *approval.Approval, now time.Time) any {
	if a == nil {
		return nil
	}
	s := approvalState{ID: a.ID, Call: a.Call.ID, Chat: a.Chat, User: a.User, Tool: a.Tool, Function: a.Function,
		Digest: hex.EncodeToString(a.Digest), State: a.State(now)}
	if a.Decision != nil {
		s.Scope = a.Decision.Scope
	}
	if ends := a.Expire(now); !ends.IsZero() {
		s.ExpireTime = ends.UTC().Format(time.RFC3339Nano)
	}
	return s
}

// OfApproval returns what the log tells of a step of an approval, taken at an instant: before it, if it is not the
// first, and after it.
func OfApproval(before, after *approval.Approval, now time.Time, by caller.Caller) Entry {
	e := Entry{Caller: by, Kind: "approval", ObjectID: string(after.ID), User: after.User}
	switch {
	case before == nil:
		e.Action = ActionAsk
	case after.Revocation != nil:
		e.Action, e.Reason = ActionRevoke, cmp.Or(after.Revocation.Reason, by.Reason)
	case !after.Use.IsZero():
		e.Action = ActionUse
	case after.Decision.Approve:
		e.Action, e.Reason = ActionGrant, cmp.Or(after.Decision.Reason, by.Reason)
	default:
		e.Action, e.Reason = ActionDeny, cmp.Or(after.Decision.Reason, by.Reason)
	}
	e.Before, e.After = statesOf(approvalStateOf(before, now), approvalStateOf(after, now))
	return e
}

// Refusal is a risky call that was refused.
type Refusal struct {
	Call     id.Call     `json:"call_id"`
	Chat     id.Chat     `json:"chat_id"`
	User     id.User     `json:"user_id"`
	Tool     id.Tool     `json:"tool_id"`
	Function string      `json:"function"`
	Reason   string      `json:"call_reason"`
	Message  string      `json:"message"`
	Approval id.Approval `json:"approval_id"`
}

// OfRefusal returns what the log tells of a refusal.
func OfRefusal(r Refusal, by caller.Caller) Entry {
	e := Entry{Caller: by, Action: ActionRefuse, Kind: "call", ObjectID: string(r.Call), User: r.User}
	_, e.After = statesOf(nil, r)
	return e
}

// overrideState is an override as the log tells it. A limit of 0 is a limit.
type overrideState struct {
	User       id.User  `json:"user_id"`
	Quota      id.Quota `json:"quota_id"`
	Limit      *int64   `json:"limit"`
	ExpireTime string   `json:"expire_time"`
}

func overrideStateOf(user id.User, o *quota.Override) any {
	if o == nil {
		return nil
	}
	s := overrideState{User: user, Quota: o.Rule, Limit: &o.Limit}
	if !o.Expire.IsZero() {
		s.ExpireTime = o.Expire.UTC().Format(time.RFC3339Nano)
	}
	return s
}

// OfOverride returns what the log tells of a user's own limit that was set, changed or taken away: none if it is as it
// was.
func OfOverride(user id.User, rule id.Quota, before, after *quota.Override, by caller.Caller) []Entry {
	e := Entry{Caller: by, Action: ActionUpdate, Kind: "quota_override", ObjectID: string(user) + "," + string(rule), User: user}
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		e.Action = ActionCreate
	case after == nil:
		e.Action = ActionDelete
	default:
		if before.Limit != after.Limit {
			e.ChangedFields = append(e.ChangedFields, "limit")
		}
		if !before.Expire.Equal(after.Expire) {
			e.ChangedFields = append(e.ChangedFields, "expire_time")
		}
		if e.ChangedFields == nil {
			return nil
		}
	}
	e.Before, e.After = statesOf(overrideStateOf(user, before), overrideStateOf(user, after))
	return []Entry{e}
}

// OfReset returns what the log tells of a user's usage of a quota that is to be forgotten.
func OfReset(r quota.Reset, used int64, by caller.Caller) Entry {
	e := Entry{Caller: by, Action: ActionReset, Kind: "quota_usage", ObjectID: string(r.User) + "," + string(r.Quota), User: r.User}
	e.Reason = cmp.Or(r.Reason, by.Reason)
	type usage struct {
		User    id.User  `json:"user_id"`
		Quota   id.Quota `json:"quota_id"`
		Used    int64    `json:"used"`
		Request string   `json:"reset_request_id"`
	}
	e.Before, e.After = statesOf(usage{r.User, r.Quota, used, r.ID}, usage{r.User, r.Quota, 0, r.ID})
	return e
}
