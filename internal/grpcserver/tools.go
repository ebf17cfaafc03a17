package grpcserver

import (
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

var (
	toolsField             = numberOf(&toolgrantv1.ResolveToolsResponse{}, "tools")
	enabledByField         = numberOf(&toolgrantv1.EffectiveTool{}, "enabled_by")
	expiresAfterTurnsField = numberOf(&toolgrantv1.EffectiveTool{}, "expires_after_turns")
)

// Fields of EnabledBy.
var enabledByFields = struct{ core, chat, avatarIDs protowire.Number }{
	numberOf(&toolgrantv1.EnabledBy{}, "core"),
	numberOf(&toolgrantv1.EnabledBy{}, "chat"),
	numberOf(&toolgrantv1.EnabledBy{}, "avatar_ids"),
}

// canonical encodes equal messages alike, so that watchers see what is equal.
var canonical = proto.MarshalOptions{Deterministic: true}

// encodedTools holds what answers say of the tools of one world whoever asks, encoded when it is first asked for.
type encodedTools struct {
	world       *effective.World
	basic, full []atomic.Pointer[[]byte] // by number
}

func newEncodedTools(w *effective.World) *encodedTools {
	n := w.Catalog.Len()
	return &encodedTools{world: w, basic: make([]atomic.Pointer[[]byte], n), full: make([]atomic.Pointer[[]byte], n)}
}

// of returns the encoding of a tool, without what depends on who asks.
func (t *encodedTools) of(n uint, view toolgrantv1.ToolView) ([]byte, error) {
	held := &t.basic[n]
	if view == toolgrantv1.ToolView_TOOL_VIEW_FULL {
		held = &t.full[n]
	}
	if data := held.Load(); data != nil {
		return *data, nil
	}
	tool, err := effectiveToProto(t.world, n, view)
	if err != nil {
		return nil, err
	}
	data, err := canonical.Marshal(tool)
	if err == nil {
		held.Store(&data)
	}
	return data, err
}

// appendTools encodes the effective tools of an answer as its field tools. A message that is encoded in two parts,
// one after the other, is that of both parts' fields.
func (t *encodedTools) appendTools(body []byte, a *effective.Answer, view toolgrantv1.ToolView) ([]byte, error) {
	var own, by []byte
	for n := range a.Effective.EachSet() {
		fixed, err := t.of(n, view)
		if err != nil {
			return nil, err
		}
		by = appendEnabledBy(by[:0], t.world.Catalog.Tool(n).Core, a.Enable.ByChat.Test(n), a.Enable.Binding(n))
		own = protowire.AppendBytes(protowire.AppendTag(own[:0], enabledByField, protowire.BytesType), by)
		if left, ok := a.Enable.TurnsLeft(n); ok {
			own = protowire.AppendVarint(protowire.AppendTag(own, expiresAfterTurnsField, protowire.VarintType), uint64(left))
		}
		body = protowire.AppendTag(body, toolsField, protowire.BytesType)
		body = protowire.AppendVarint(body, uint64(len(fixed)+len(own)))
		body = append(append(body, fixed...), own...)
	}
	return body, nil
}

// appendEnabledBy encodes an EnabledBy, field by field as withheldEncoder does.
func appendEnabledBy(data []byte, core, chat bool, avatars []id.Avatar) []byte {
	if core {
		data = appendTrue(data, enabledByFields.core)
	}
	if chat {
		data = appendTrue(data, enabledByFields.chat)
	}
	for _, avatar := range avatars {
		data = appendString(data, enabledByFields.avatarIDs, string(avatar))
	}
	return data
}

// effectiveToProto tells of a tool what does not depend on who asks.
func effectiveToProto(w *effective.World, n uint, view toolgrantv1.ToolView) (*toolgrantv1.EffectiveTool, error) {
	tool, toolType := w.Catalog.Tool(n), w.Catalog.Type(n)
	p := &toolgrantv1.EffectiveTool{
		ToolId:      string(tool.ID),
		ToolTypeId:  string(tool.Type),
		Name:        tool.Name,
		Title:       tool.Title,
		Description: tool.Description,
		Category:    tool.Category,
		Risk:        riskToProto(tool.Risk),
		Core:        tool.Core,
		Source:      sourceToProto(toolType.Source),
	}
	if view != toolgrantv1.ToolView_TOOL_VIEW_FULL {
		return p, nil
	}
	var err error
	p.Prompt = tool.Prompt
	if p.Config, err = structFromJSON(tool.Config); err != nil {
		return nil, err
	}
	if toolType.Source != catalog.SourceExternalMCP {
		function := &toolgrantv1.ToolFunction{Name: tool.Name, Description: tool.Description}
		if function.InputSchema, err = structFromJSON(toolType.InputSchema); err != nil {
			return nil, err
		}
		p.Functions = append(p.Functions, function)
		return p, nil
	}
	usable, quarantined := tool.Usable(toolType)
	functions, err := functionsToProto(usable)
	if err != nil {
		return nil, err
	}
	for _, f := range functions {
		p.Functions = append(p.Functions, &toolgrantv1.ToolFunction{Name: call.UniqueName(tool.Name, f.GetName()), Title: f.GetTitle(),
			Description: f.GetDescription(), InputSchema: f.GetInputSchema(), OutputSchema: f.GetOutputSchema(), Annotations: f.GetAnnotations()})
	}
	for i := range quarantined {
		difference := toolType.Difference(&quarantined[i])
		q := &toolgrantv1.QuarantinedFunction{Name: call.UniqueName(tool.Name, quarantined[i].Name), Difference: differenceToProto(difference)}
		q.Message, q.MessageZh = call.QuarantineInWords(q.Name, difference)
		p.QuarantinedFunctions = append(p.QuarantinedFunctions, q)
	}
	return p, nil
}
