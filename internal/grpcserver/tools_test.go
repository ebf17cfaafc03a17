package grpcserver

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/id"
)

func TestWhatEnabledAToolIsEncodedAsItsMessageIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		core, chat := rapid.Bool().Draw(t, "core"), rapid.Bool().Draw(t, "chat")
		avatars := rapid.SliceOfN(rapid.SampledFrom([]id.Avatar{"planner", "critic"}), 0, 3).Draw(t, "avatars")
		got, want := &toolgrantv1.EnabledBy{}, &toolgrantv1.EnabledBy{Core: core, Chat: chat, AvatarIds: strings(avatars)}
		if err := proto.Unmarshal(appendEnabledBy(nil, core, chat, avatars), got); err != nil || !proto.Equal(got, want) {
			t.Fatalf("got %v (%v), want %v", got, err, want)
		}
	})
}
