package grpcserver

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

func TestWithheldToolsAreEncodedAsTheirMessagesAre(t *testing.T) {
	var e withheldEncoder // for one after the other, as in an answer
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", "b", "“字幕” cannot be used on this device."})
		groups := rapid.SliceOfN(rapid.SampledFrom([]id.Group{"free", "premium"}), 0, 2)
		surfaces := rapid.SliceOfN(rapid.SampledFrom([]availability.Surface{availability.Web, {Device: "phone"}, {Device: "display"}}), 0, 3)
		w := effective.Withheld{
			Tool:                id.Tool(text.Draw(t, "tool")),
			Reason:              rapid.SampledFrom([]effective.Reason{effective.ReasonNone, effective.ReasonRetired, effective.ReasonShadowed}).Draw(t, "reason"),
			Message:             text.Draw(t, "message"),
			MessageZH:           text.Draw(t, "message in Chinese"),
			MissingCapabilities: rapid.SliceOfN(text, 0, 2).Draw(t, "missing capabilities"),
			Groups:              groups.Draw(t, "groups"),
			GrantingGroups:      groups.Draw(t, "granting groups"),
			Surfaces:            surfaces.Draw(t, "surfaces"),
			ShadowedBy:          id.Tool(text.Draw(t, "shadowed by")),
		}
		if err := e.encode(&w); err != nil {
			t.Fatal(err)
		}
		got, want := &toolgrantv1.WithheldTool{}, withheldToProto(w)
		if err := proto.Unmarshal(e.one, got); err != nil || !proto.Equal(got, want) {
			t.Fatalf("got %v (%v), want %v", got, err, want)
		}
	})
}
