package grpcserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestHistoryIsListedInPages(t *testing.T) {
	ctx := testkit.Context(t)
	n := node.Start(t, testkit.Database(t), node.Options{})
	var parts []quota.Usage
	for d := range 3 {
		for _, user := range []id.User{"ann", "long.gone"} {
			parts = append(parts, quota.Usage{Day: time.Date(2026, 1, 30+d, 0, 0, 0, 0, time.UTC), User: user, Tool: "web", Calls: int64(d + 1), Tokens: 7})
		}
	}
	if err := n.Store.AddHistory(ctx, "node", 1, parts); err != nil {
		t.Fatal(err)
	}
	client := v1.NewQuotaServiceClient(n.Conn)
	for _, test := range []struct {
		request *v1.ListQuotaHistoryRequest
		want    string
	}{
		{&v1.ListQuotaHistoryRequest{}, "2026-01-30 ann 1, 2026-01-30 long.gone 1, 2026-01-31 ann 2, 2026-01-31 long.gone 2, 2026-02-01 ann 3, 2026-02-01 long.gone 3"},
		{&v1.ListQuotaHistoryRequest{UserId: "long.gone"}, "2026-01-30 long.gone 1, 2026-01-31 long.gone 2, 2026-02-01 long.gone 3"},
		{&v1.ListQuotaHistoryRequest{UserId: "ann", ToolId: "web", FirstDay: "2026-01-31"}, "2026-01-31 ann 2, 2026-02-01 ann 3"},
		{&v1.ListQuotaHistoryRequest{ToolId: "web", FirstDay: "2026-01-31", LastDay: "2026-01-31"}, "2026-01-31 ann 2, 2026-01-31 long.gone 2"},
		{&v1.ListQuotaHistoryRequest{ToolId: "none"}, ""},
	} {
		for _, size := range []int32{0, 1, 2} {
			var got []string
			test.request.PageSize, test.request.PageToken = size, ""
			for {
				page, err := client.ListQuotaHistory(ctx, test.request)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range page.GetUsage() {
					got = append(got, fmt.Sprint(u.GetDay(), " ", u.GetUserId(), " ", u.GetCalls()))
				}
				if test.request.PageToken = page.GetNextPageToken(); test.request.PageToken == "" {
					break
				}
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("%v: got %v, want %s", test.request, got, test.want)
			}
		}
	}

	page, err := client.ListQuotaHistory(ctx, &v1.ListQuotaHistoryRequest{PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ListQuotaHistory(ctx, &v1.ListQuotaHistoryRequest{UserId: "ann", PageToken: page.GetNextPageToken()})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "page_token")
	_, err = client.ListQuotaHistory(ctx, &v1.ListQuotaHistoryRequest{FirstDay: "2026-02-30", LastDay: "today", PageSize: 1})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "first_day", "last_day")
	_, err = client.ListQuotaHistory(ctx, &v1.ListQuotaHistoryRequest{UserId: "not one", PageSize: 1001})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "user_id", "page_size")
}
