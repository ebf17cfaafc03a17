package grpcserver

import (
	"context"
	"fmt"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// What is looked at of requests. The generated code has these methods, so nothing is looked up by name.
type (
	ofUser     interface{ GetUserId() string }
	ofChat     interface{ GetChatId() string }
	ofApproval interface{ GetApprovalId() string }
	ofTurn     interface{ GetTurn() int32 }
)

// checkRequest refuses what this caller may not ask, though others may.
func (a *access) checkRequest(ctx context.Context, r *rule, who *caller.Identity, request any) error {
	switch who.Role {
	case caller.Frontend:
		return a.checkOwn(ctx, r, who, request)
	case caller.Viewer:
		// A turn is stored if something depends on it, even by what is otherwise a read.
		if q, ok := request.(ofTurn); ok && q.GetTurn() != 0 {
			return &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonRoleNotAllowed, Message: "the role viewer changes nothing",
				Violations: []fault.Violation{{Field: "turn", Description: "must not be set: it may be stored"}}}
		}
	}
	return nil
}

// checkOwn refuses a frontend's request for what is not its own user's.
func (a *access) checkOwn(ctx context.Context, r *rule, who *caller.Identity, request any) error {
	switch r.own {
	case toolgrantv1.Own_OWN_USER:
		if q, ok := request.(ofUser); ok && who.User != "" && q.GetUserId() == string(who.User) {
			return nil
		}
		return errAnotherUser(who, "user_id must be this user's")
	case toolgrantv1.Own_OWN_CHAT:
		if q, ok := request.(ofChat); ok {
			return a.checkOwnChat(ctx, id.Chat(q.GetChatId()), who)
		}
	case toolgrantv1.Own_OWN_APPROVAL:
		if q, ok := request.(ofApproval); ok {
			found, err := a.approvals.Approval(ctx, id.Approval(q.GetApprovalId()))
			if err == nil && (who.User == "" || found.User != who.User) {
				err = errAnotherUser(who, "the approval is another user's")
			}
			return err
		}
	case toolgrantv1.Own_OWN_UNSPECIFIED:
		if who.MCP && r.mcpRoles[who.Role] {
			return nil // our own code asks, about what it was allowed before
		}
	}
	return errAnotherUser(who, "the request names no user")
}

func errAnotherUser(who *caller.Identity, what string) error {
	return &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonAnotherUser,
		Message: fmt.Sprintf("%s reaches the data of user %q only: %s", who.Actor, who.User, what)}
}

// checkOwnChat refuses a chat that does not exist, so that nobody else creates it before the handler looks for it, and
// one of another user. Whose a chat is does not change, so memory will do, but for a chat that it does not know.
func (a *access) checkOwnChat(ctx context.Context, chat id.Chat, who *caller.Identity) error {
	if !id.Valid(string(chat)) {
		return fault.Invalid(fault.Violation{Field: "chat_id", Description: "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ / -"})
	}
	for _, c := range []replica.Consistency{{}, {Full: true}} {
		facts, err := a.replica.Facts(ctx, chat, who.User, availability.Surface{}, c)
		switch {
		case err != nil:
			return err
		case facts.Chat == nil:
			continue
		case who.User == "" || facts.Chat.User != who.User:
			return &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonChatOfAnotherUser, Message: fmt.Sprintf("chat %q belongs to another user", chat)}
		}
		return nil
	}
	return fault.Missing("chat", string(chat))
}
