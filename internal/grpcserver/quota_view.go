package grpcserver

import (
	"context"
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// limitedTool is where a tool that has rules stands in an encoded answer.
type limitedTool struct {
	n                   uint
	begin, content, end int // of the field tools; between content and end is the message
}

// limitedTools finds the tools that have rules. The answer begins with all tools of the set, in its order.
func limitedTools(w *effective.World, set *catalog.Set, body []byte) (found []limitedTool, err error) {
	at := 0
	for n := range set.EachSet() {
		_, _, tag := protowire.ConsumeTag(body[at:])
		if tag < 0 {
			return nil, fmt.Errorf("tool %s in the answer: %w", w.Catalog.Tool(n).ID, protowire.ParseError(tag))
		}
		content, size := protowire.ConsumeBytes(body[at+tag:])
		if size < 0 {
			return nil, fmt.Errorf("tool %s in the answer: %w", w.Catalog.Tool(n).ID, protowire.ParseError(size))
		}
		end := at + tag + size
		if len(w.Catalog.Rules(n)) > 0 {
			found = append(found, limitedTool{n, at, end - len(content), end})
		}
		at = end
	}
	return found, nil
}

// withQuotas is an answer's body with how the rules of its tools stand. They change with every call, so they are
// asked for each time; what the answer says else is not made again.
func (s *entitlementServer) withQuotas(ctx context.Context, a *answer, f *replica.Facts) (mem.SliceBuffer, error) {
	account, unread := s.replica.Account(ctx, f.User.ID)
	now := s.now()
	rules := make([][]quota.Limited, len(a.limited))
	for i, tool := range a.limited {
		rules[i] = account.Overrides.Apply(f.World.Catalog.Rules(tool.n), now)
	}
	states, err := statesOf(ctx, s.gate, f.User.ID, rules)
	if err != nil {
		return nil, err
	}
	body, copied := make([]byte, 0, len(a.body)+len(a.limited)*256), 0
	var quotas []byte
	for i, tool := range a.limited {
		if unread != nil { // so it is not known what the user's own limits are
			for k := range states[i] {
				states[i][k].ByOutage = true
			}
		}
		part := &toolgrantv1.EffectiveTool{Quotas: statesToProto(f.World, states[i])}
		if quotas, err = canonical.MarshalAppend(quotas[:0], part); err != nil {
			return nil, err
		}
		body = append(body, a.body[copied:tool.begin]...)
		body = protowire.AppendTag(body, toolsField, protowire.BytesType)
		body = protowire.AppendVarint(body, uint64(tool.end-tool.content+len(quotas)))
		body = append(append(body, a.body[tool.content:tool.end]...), quotas...)
		copied = tool.end
	}
	return append(body, a.body[copied:]...), nil
}
