package grpcserver

import (
	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/id"
)

// plain tells that a request certainly keeps the rules of the protos. The validator, which evaluates the
// rules themselves, takes longer than all the rest of a question that is answered from memory; so it is asked
// only about what is not plain. A test holds the two together.
func plain(request any) bool {
	switch r := request.(type) {
	case *toolgrantv1.ResolveToolsRequest:
		return plainQuestion(r) && plainView(r.GetView()) && r.GetTurn() >= 0 && r.GetQuery() == ""
	case *toolgrantv1.CheckToolRequest:
		return plainQuestion(r) && id.Valid(r.GetToolId()) && r.GetTurn() >= 0
	case *toolgrantv1.ConsumeQuotaRequest:
		return plainOperation(r) && (r.Calls == nil || within(r.GetCalls(), 1, 1_000_000)) && within(r.GetTokens(), 0, 1_000_000_000)
	case *toolgrantv1.ReserveQuotaRequest:
		return plainOperation(r) && r.Lease == nil && within(r.GetTokens(), 0, 1_000_000_000)
	case *toolgrantv1.CommitQuotaRequest:
		return id.Valid(r.GetOperationId()) && within(r.GetTokens(), 0, 1_000_000_000)
	case *toolgrantv1.ReleaseQuotaRequest:
		return id.Valid(r.GetOperationId())
	case *toolgrantv1.AuthorizeCallRequest:
		return plainCall(r)
	case *toolgrantv1.ReportCallRequest:
		return plainReport(r)
	}
	return false
}

func plainOperation(o interface {
	GetOperationId() string
	GetUserId() string
	GetToolId() string
}) bool {
	return id.Valid(o.GetOperationId()) && id.Valid(o.GetUserId()) && id.Valid(o.GetToolId())
}

func within(n, least, most int64) bool { return least <= n && n <= most }

func plainQuestion(q question) bool {
	return id.Valid(q.GetChatId()) && id.Valid(q.GetUserId()) && plainSurface(q.GetSurface()) && plainConsistency(q.GetConsistency())
}

func plainSurface(s *toolgrantv1.Surface) bool {
	switch kind := s.GetKind().(type) {
	case *toolgrantv1.Surface_DeviceId:
		return id.Valid(kind.DeviceId)
	case *toolgrantv1.Surface_Web:
		return true
	}
	return false
}

func plainConsistency(c *toolgrantv1.Consistency) bool {
	return c == nil || c.GetAtLeastAsFresh() != "" && len(c.GetAtLeastAsFresh()) < 256
}

func plainView(v toolgrantv1.ToolView) bool {
	_, known := toolgrantv1.ToolView_name[int32(v)]
	return known
}
