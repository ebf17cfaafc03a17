package grpcserver

import (
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// What is plain the validator accepts; and what it accepts of a question is plain, or else plain would save
// nothing.
func TestPlainQuestionsAreValid(t *testing.T) {
	validator, err := protovalidate.New()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[A-Za-z0-9._:@/-]{0,8}`),
			rapid.StringMatching(`[A-Za-z0-9._:@/-]{126,130}`),
			rapid.StringMatching(`[ -~]{1,3}`),
			rapid.StringN(0, 3, 9),
		)
		surface := rapid.SampledFrom([]func() *toolgrantv1.Surface{
			func() *toolgrantv1.Surface { return nil },
			func() *toolgrantv1.Surface { return &toolgrantv1.Surface{} },
			func() *toolgrantv1.Surface {
				return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}
			},
			func() *toolgrantv1.Surface {
				return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: text.Draw(t, "device")}}
			},
		}).Draw(t, "surface")()
		var consistency *toolgrantv1.Consistency
		if rapid.Bool().Draw(t, "has consistency") {
			consistency = &toolgrantv1.Consistency{Requirement: &toolgrantv1.Consistency_AtLeastAsFresh{AtLeastAsFresh: rapid.StringN(0, 3, 9).Draw(t, "token")}}
		}
		var turn *int32
		if rapid.Bool().Draw(t, "has turn") {
			turn = proto.Int32(rapid.Int32Range(-2, 2).Draw(t, "turn"))
		}
		requests := []proto.Message{
			&toolgrantv1.ResolveToolsRequest{ChatId: text.Draw(t, "chat"), UserId: text.Draw(t, "user"), Surface: surface, Turn: turn,
				Consistency: consistency, View: toolgrantv1.ToolView(rapid.Int32Range(-1, 4).Draw(t, "view"))},
			&toolgrantv1.CheckToolRequest{ChatId: text.Draw(t, "chat"), UserId: text.Draw(t, "user"), Surface: surface, Turn: turn,
				Consistency: consistency, ToolId: text.Draw(t, "tool")},
			&toolgrantv1.ConsumeQuotaRequest{OperationId: text.Draw(t, "operation"), UserId: text.Draw(t, "user"), ToolId: text.Draw(t, "tool"),
				Calls: units(t, "calls"), Tokens: units(t, "tokens")},
			&toolgrantv1.ReserveQuotaRequest{OperationId: text.Draw(t, "operation"), UserId: text.Draw(t, "user"), ToolId: text.Draw(t, "tool"),
				Tokens: units(t, "tokens")},
			&toolgrantv1.CommitQuotaRequest{OperationId: text.Draw(t, "operation"), Tokens: units(t, "tokens")},
			&toolgrantv1.ReleaseQuotaRequest{OperationId: text.Draw(t, "operation")},
		}
		for _, r := range requests {
			if valid := validator.Validate(r) == nil; plain(r) != valid {
				t.Fatalf("plain: %v, valid: %v: %v", plain(r), valid, r)
			}
		}
	})
}

// units are none, or about the bounds.
func units(t *rapid.T, name string) *int64 {
	n := rapid.OneOf(rapid.Int64Range(-2, 2), rapid.Int64Range(999_999, 1_000_002), rapid.Int64Range(999_999_999, 1_000_000_002)).Draw(t, name)
	return rapid.SampledFrom([]*int64{nil, &n}).Draw(t, name+" given")
}
