package effective

import (
	"fmt"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Facts is all that an answer rests on besides the instant, read from one snapshot of the database.
type Facts struct {
	World        *World
	User         *availability.User
	DeviceExists bool         // the surface's device exists, whoever's it is
	Chat         *enable.Chat // nil: never created
	Revision     revision.Revision
}

// Ask turns facts into a question, or refuses: an unknown device, a device or chat of another user, an ended
// chat. A nil turn means the chat's; the chat's turn is the highest ever passed. advance tells that the
// chat's turn has to be stored, since an enabling with a TTL depends on it.
func (f *Facts) Ask(surface availability.Surface, turn *int32, now time.Time) (q Question, advance bool, err error) {
	if err := f.checkSurface(surface); err != nil {
		return Question{}, false, err
	}
	q = Question{User: f.User, Surface: surface, Now: now}
	if f.Chat != nil {
		if f.Chat.User != f.User.ID {
			return Question{}, false, &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonChatOfAnotherUser,
				Message: fmt.Sprintf("chat %q belongs to another user", f.Chat.ID)}
		}
		if err := f.Chat.Ended(); err != nil {
			return Question{}, false, err
		}
		q.Chat, q.Turn = f.Chat.State, f.Chat.Turn
	}
	if turn != nil && *turn > q.Turn {
		advance = q.Chat.DependsOnTurn(q.Turn)
		q.Turn = *turn
	}
	return q, advance, nil
}

func (f *Facts) checkSurface(surface availability.Surface) error {
	if surface.IsWeb() {
		return nil
	}
	if !f.DeviceExists {
		return fault.Missing("device", string(surface.Device))
	}
	if _, own := f.User.Device(surface.Device); !own {
		return &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonDeviceOfAnotherUser,
			Message: fmt.Sprintf("device %q belongs to another user", surface.Device)}
	}
	return nil
}

// FirstEntries are the entries that a new chat's log begins with: its default avatar, if there is one.
func (f *Facts) FirstEntries(surface availability.Surface) ([]enable.Entry, error) {
	if err := f.checkSurface(surface); err != nil {
		return nil, err
	}
	device, _ := f.User.Device(surface.Device)
	if avatar, ok := f.World.Enable.Default(f.User.ID, device.Type); ok {
		return []enable.Entry{{Avatar: avatar, Action: enable.ActionEnable}}, nil
	}
	return nil, nil
}
