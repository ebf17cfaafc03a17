package audit

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
)

// keyState is what the log keeps of an API key: nothing of its secrets but when they were made.
type keyState struct {
	Key     id.APIKey   `json:"key_id"`
	Title   string      `json:"title"`
	Role    caller.Role `json:"role"`
	User    id.User     `json:"user_id"`
	Expire  string      `json:"expire_time"`
	Revoke  string      `json:"revoke_time"`
	Secrets []string    `json:"secret_create_times"`
}

func keyStateOf(k *apikey.Key) any {
	if k == nil {
		return nil
	}
	s := keyState{Key: k.ID, Title: k.Title, Role: k.Role, User: k.User, Expire: timeText(k.Expire), Revoke: timeText(k.Revoke)}
	for _, secret := range k.Secrets {
		s.Secrets = append(s.Secrets, timeText(secret.Create))
	}
	return s
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// OfAPIKey returns what the log tells of a key that was created (there is none before), rotated or revoked.
func OfAPIKey(action Action, before, after *apikey.Key, by caller.Caller) Entry {
	e := Entry{Caller: by, Action: action, Kind: "api_key", ObjectID: string(after.ID), User: after.User}
	switch action {
	case ActionRotate:
		e.ChangedFields = []string{"secret_create_times"}
	case ActionRevoke:
		e.ChangedFields = []string{"revoke_time"}
	}
	e.Before, e.After = statesOf(keyStateOf(before), keyStateOf(after))
	return e
}
