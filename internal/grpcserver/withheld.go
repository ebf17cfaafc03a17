package grpcserver

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
)

var withheldField = numberOf(&toolgrantv1.ResolveToolsResponse{}, "withheld")

// Fields of WithheldTool.
var withheldFields = struct {
	toolID, reason, message, messageZH, missingCapabilities, groupIDs, grantingGroupIDs, surfaces, shadowedBy protowire.Number
}{
	numberOf(&toolgrantv1.WithheldTool{}, "tool_id"),
	numberOf(&toolgrantv1.WithheldTool{}, "reason"),
	numberOf(&toolgrantv1.WithheldTool{}, "message"),
	numberOf(&toolgrantv1.WithheldTool{}, "message_zh"),
	numberOf(&toolgrantv1.WithheldTool{}, "missing_capabilities"),
	numberOf(&toolgrantv1.WithheldTool{}, "group_ids"),
	numberOf(&toolgrantv1.WithheldTool{}, "granting_group_ids"),
	numberOf(&toolgrantv1.WithheldTool{}, "surfaces"),
	numberOf(&toolgrantv1.WithheldTool{}, "shadowed_by_tool_id"),
}

// withheldEncoder encodes the withheld tools of one answer. They are often more than the effective ones, and are
// encoded field by field: through messages of their own that takes several times as long. A test compares.
type withheldEncoder struct {
	surfaces map[availability.Surface][]byte // encoded
	one      []byte
}

// append encodes what an answer withholds as its field withheld.
func (e *withheldEncoder) append(body []byte, a *effective.Answer) ([]byte, error) {
	for w := range a.Withheld() {
		if err := e.encode(&w); err != nil {
			return nil, err
		}
		body = protowire.AppendBytes(protowire.AppendTag(body, withheldField, protowire.BytesType), e.one)
	}
	return body, nil
}

func (e *withheldEncoder) encode(w *effective.Withheld) error {
	f := &withheldFields
	b := appendString(e.one[:0], f.toolID, string(w.Tool))
	b = protowire.AppendVarint(protowire.AppendTag(b, f.reason, protowire.VarintType), uint64(reasonToProto(w.Reason)))
	b = appendString(appendString(b, f.message, w.Message), f.messageZH, w.MessageZH)
	for _, capability := range w.MissingCapabilities {
		b = appendString(b, f.missingCapabilities, capability)
	}
	for _, group := range w.Groups {
		b = appendString(b, f.groupIDs, string(group))
	}
	for _, group := range w.GrantingGroups {
		b = appendString(b, f.grantingGroupIDs, string(group))
	}
	for _, surface := range w.Surfaces {
		encoded, ok := e.surfaces[surface]
		if !ok {
			var err error
			if encoded, err = proto.Marshal(surfaceToProto(surface)); err != nil {
				return err
			}
			if e.surfaces == nil {
				e.surfaces = map[availability.Surface][]byte{}
			}
			e.surfaces[surface] = encoded
		}
		b = protowire.AppendBytes(protowire.AppendTag(b, f.surfaces, protowire.BytesType), encoded)
	}
	if w.ShadowedBy != "" {
		b = appendString(b, f.shadowedBy, string(w.ShadowedBy))
	}
	e.one = b
	return nil
}
