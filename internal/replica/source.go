package replica

import (
	"context"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Source is the database that a replica follows. Its errors are faults, or unexpected.
type Source interface {
	// Changes reads what was committed since a revision, in one snapshot. Since the zero revision, and since
	// one that it cannot tell for, the changes are lost.
	Changes(ctx context.Context, since revision.Revision) (Delta, error)
	// UserAndChat reads a user (nil: there is none) and a chat (nil: never created) in one round trip, and the
	// version of the catalogue that was current then. An empty id reads nothing of it. What it reads includes at least
	// the revision.
	UserAndChat(ctx context.Context, user id.User, chat id.Chat, atLeast revision.Revision) (*availability.User, *enable.Chat, int64, error)
	// Overrides reads a user's own limits of quotas, whether the user exists, and the version of the catalogue that was
	// current then.
	Overrides(context.Context, id.User) (overrides quota.Overrides, exists bool, version int64, err error)
	// Facts reads all that a question rests on, in one snapshot.
	Facts(context.Context, id.Chat, id.User, availability.Surface) (effective.Facts, error)
}

// Delta is what a source found changed.
type Delta struct {
	// Revision is the snapshot that the changes lead to.
	Revision revision.Revision
	// Version is that of the catalogue. It grows with each write of the catalogue or of users.
	Version int64
	// World is the compiled catalogue: another pointer if and only if it may differ.
	World *effective.World
	// Lost says that not all changes are known: whatever was read before must be read again.
	Lost bool
	// Users and Chats were changed.
	Users []id.User
	Chats []id.Chat
	// Keys are the API keys; nil: as they were.
	Keys *apikey.Ring
	// Approvals were asked for, or something became of them.
	Approvals []approval.Ref
}
