package call

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/toolgrant/toolgrant/internal/id"
)

// given refuses a tool that the model is not given: it is not enabled, or it is withheld.
func given(f *Facts, r *Request, c *candidate, a *Answer) bool {
	t := c.tool(f.Index)
	english, chinese := title(t, "en"), title(t, "zh")
	switch f.standing(c) {
	case effectiveNow:
		return true
	case availableNotEnabled:
		if f.Answer.Enable.OffByChat.Test(c.number) {
			a.refuse(ReasonNotEnabled, english+" was turned off in this conversation.", chinese+"已在此对话中关闭。")
		} else {
			a.refuse(ReasonNotEnabled, english+" is not enabled in this conversation.", chinese+"未在此对话中启用。")
		}
		a.Next.Enable = enable(r, t.ID)
	case neither:
		why, _ := f.Answer.WithheldTool(c.number)
		a.Withheld = &why
		a.refuse(ReasonNotEnabled, english+" is not enabled in this conversation, and to enable it would not do: "+why.Message,
			chinese+"未在此对话中启用，启用也无法使用："+why.MessageZH)
		a.instead(f, r, c, 0)
	default:
		why, _ := f.Answer.WithheldTool(c.number)
		a.Withheld = &why
		a.refuse(ReasonWithheld, why.Message, why.MessageZH)
		a.instead(f, r, c, 0)
		if other := f.enableable(r); other != nil && a.Next.Fallback == nil {
			a.Trace = append(a.Trace, "The function "+quoted(r.Function)+" is also that of tool "+where(f.Index, other)+", which could be enabled.")
			a.Next.Enable = enable(r, other.tool(f.Index).ID)
		}
	}
	return false
}

// enableable finds another tool with the function that was called, where it was looked for, that has only to be
// enabled.
func (f *Facts) enableable(r *Request) *candidate {
	server, _ := f.origin(r.Source, &Answer{})
	var found []candidate
	for _, owner := range [...]id.User{f.User, ""} {
		for _, other := range f.Index.names[nameKey{owner, r.Function}] {
			if (server == "" || other.server(f.Index) == server) && f.standing(&other) == availableNotEnabled {
				found = append(found, other)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	if found = prefer(f.Index, found, &Answer{}); len(found) > 1 {
		return nil
	}
	return &found[0]
}

// enable is the request that enables a tool. Asked for once more for the same call, it is the same request.
func enable(r *Request, tool id.Tool) *EnableRequest {
	name := "enable:" + string(r.Call)
	if len(name) > id.MaxBytes {
		sum := sha256.Sum256([]byte(r.Call))
		name = "enable:" + hex.EncodeToString(sum[:])
	}
	return &EnableRequest{Chat: r.Chat, RequestID: name, Turn: r.Turn, Tool: tool}
}
