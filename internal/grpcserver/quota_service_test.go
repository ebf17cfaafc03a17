package grpcserver_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func TestConsume(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, `
tools:
  - tool_id: web_search.pro
    tool_type_id: search
    name: web_search
    precedence: 10
    config: {depth: 9}
    quotas:
      - {quota_id: pro.hour, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 3, window: {fixed: 3600s}}
`)
	q := v1.NewQuotaServiceClient(c.conn)
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.OK, codes.ResourceExhausted} {
		r, err := q.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: "o" + string(rune('0'+i)), UserId: "ann", ToolId: "web_search.pro"})
		if status.Code(err) != want {
			t.Fatalf("call %d: %v, %v", i, r, err)
		}
		t.Log(r, err, status.Convert(err).Details())
	}
}
