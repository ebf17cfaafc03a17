package grpcserver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// browser asks a server over HTTP, which also answers over gRPC.
type browser struct {
	client
	t   *testing.T
	ctx context.Context
	at  string // http://address
}

func overHTTP(t *testing.T) browser {
	t.Helper()
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{})
	web, err := grpcserver.Web(n.Server, grpcserver.WebOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(web)
	t.Cleanup(server.Close)
	b := browser{clientOf(n.Conn, url), t, testkit.Context(t), server.URL}
	b.apply(b.ctx, t, company)
	return b
}

// ask posts a body to /toolgrant.v1. and a path, with header fields in pairs.
func (b browser) ask(path string, body []byte, fields ...string) (*http.Response, []byte) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.at+"/toolgrant.v1."+path, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for pair := range slices.Chunk(fields, 2) {
		request.Header.Set(pair[0], pair[1])
		if pair[0] == "Host" {
			request.Host = pair[1]
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response, answer
}

func (b browser) askJSON(path, body string, fields ...string) (status int, answer string) {
	b.t.Helper()
	response, data := b.ask(path, []byte(body), append([]string{"Content-Type", "application/json"}, fields...)...)
	return response.StatusCode, string(data)
}

const question = `{"chat_id": "new", "user_id": "ann", "surface": {"device_id": "ann-phone"}, "view": "TOOL_VIEW_FULL"}`

func TestUnaryCallsAreAPostOfJSON(t *testing.T) {
	b := overHTTP(t)
	want, err := b.ResolveTools(b.ctx, &v1.ResolveToolsRequest{ChatId: "new", UserId: "ann", Surface: on("ann-phone"), View: v1.ToolView_TOOL_VIEW_FULL})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // made, and held
		status, answer := b.askJSON("EntitlementService/ResolveTools", question)
		got := &v1.ResolveToolsResponse{}
		if err := protojson.Unmarshal([]byte(answer), got); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, answer, err)
		}
		if got.Revision = want.GetRevision(); !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if !strings.Contains(answer, `"tool_id":`) || !strings.Contains(answer, `"core":false`) {
			t.Errorf("names are not those of the protos, or default values are left out: %s", answer)
		}
	}
}

func TestErrorsOverHTTPHaveTheirDetails(t *testing.T) {
	b := overHTTP(t)
	for _, test := range []struct {
		body, code, detail, content string
		status                      int
	}{
		{strings.Replace(question, "ann", "nobody", 1), "not_found", "google.rpc.ResourceInfo", `"resourceName":"nobody"`, http.StatusNotFound},
		{`{"user_id": "ann"}`, "invalid_argument", "google.rpc.BadRequest", `"field":"chat_id"`, http.StatusBadRequest},
		{`{"user": "ann"}`, "invalid_argument", "", "", http.StatusBadRequest},
		{`{"user_id": "\ud800"}`, "invalid_argument", "", "", http.StatusBadRequest},
	} {
		status, answer := b.askJSON("EntitlementService/ResolveTools", test.body)
		var got struct {
			Code    string
			Details []struct {
				Type  string
				Debug json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Errorf("%s: %s", answer, err)
		}
		content := ""
		for _, detail := range got.Details {
			if detail.Type == test.detail {
				content = string(detail.Debug)
			}
		}
		if got.Code != test.code || status != test.status || !strings.Contains(content, test.content) {
			t.Errorf("%s: got %d %s", test.body, status, answer)
		}
	}
	if status, _ := b.askJSON("EntitlementService/Frobnicate", `{}`); status != http.StatusNotFound {
		t.Errorf("no such method: got %d", status)
	}
}

func TestStreamsOverGRPCWeb(t *testing.T) {
	b := overHTTP(t)
	asked, err := proto.Marshal(&v1.WatchToolsRequest{ChatId: "new", UserId: "ann", Surface: web})
	if err != nil {
		t.Fatal(err)
	}
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(asked))), asked...)
	request, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.at+"/toolgrant.v1.EntitlementService/WatchTools", bytes.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/grpc-web+proto")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	next := func() *v1.WatchToolsResponse {
		head := make([]byte, 5)
		if _, err := io.ReadFull(response.Body, head); err != nil {
			t.Fatal(err)
		}
		data := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(response.Body, data); err != nil {
			t.Fatal(err)
		}
		m := &v1.WatchToolsResponse{}
		if err := proto.Unmarshal(data, m); err != nil || head[0] != 0 {
			t.Fatalf("%q %v", data, err)
		}
		return m
	}
	const before = "now slides web_search.basic -web_search.pro:NOT_OFFERED"
	if got := summary(next()); got != before {
		t.Errorf("got %s, want %s", got, before)
	}
	b.apply(b.ctx, t, `users: [{user_id: ann, devices: [{device_id: ann-speaker, device_type_id: speaker}], memberships: [{group_id: premium}]}]`)
	if got, want := summary(next()), "now slides web_search.pro -web_search.basic:SHADOWED"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOtherPagesAreRefused(t *testing.T) {
	b := overHTTP(t)
	address := strings.TrimPrefix(b.at, "http://")
	_, port, _ := strings.Cut(address, ":")
	for _, test := range []struct {
		want   int
		fields []string
	}{
		{http.StatusOK, []string{"Origin", b.at}},
		{http.StatusOK, []string{"Sec-Fetch-Site", "same-origin"}},
		{http.StatusOK, []string{"Host", "localhost:" + port}},
		{http.StatusOK, []string{"Host", "[::1]:" + port}},
		{http.StatusOK, []string{"Host", "[::1]"}},
		{http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site"}},
		{http.StatusForbidden, []string{"Origin", "https://evil.example"}},
		{http.StatusForbidden, []string{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port}},
		{http.StatusNotFound, []string{"Content-Type", "text/plain"}}, // which pages may send without asking
	} {
		if status, answer := b.askJSON("EntitlementService/ResolveTools", question, test.fields...); status != test.want {
			t.Errorf("%v: got %d %s", test.fields, status, answer)
		}
	}
}

func TestQuotasOverHTTPAreToldInHeaderFields(t *testing.T) {
	b := overHTTP(t)
	b.apply(b.ctx, t, `
tools:
  - tool_id: slides
    tool_type_id: slides
    name: slides
    required_capabilities: [display]
    quotas:
      - {quota_id: slides.month, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, limit: 1000, window: {calendar: {period: CALENDAR_PERIOD_MONTH}}}
      - {quota_id: slides.hour, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 2, window: {fixed: 3600s}}
`)
	consume := func(operation string) (*http.Response, string) {
		response, answer := b.ask("QuotaService/ConsumeQuota", []byte(`{"operation_id": "`+operation+`", "user_id": "ann", "tool_id": "slides", "tokens": 10}`),
			"Content-Type", "application/json")
		return response, string(answer)
	}
	policy := regexp.MustCompile(`^"slides.hour";q=2;w=3600, "slides.month";q=1000;qu="tokens";w=(2678400|2592000|2505600|2419200)$`)
	for i, remaining := range []string{"1", "0"} {
		response, answer := consume(strconv.Itoa(i))
		limits := regexp.MustCompile(`^"slides.hour";r=` + remaining + `;t=36\d\d, "slides.month";r=9\d0;t=\d+$`)
		if got := response.Header.Get("RateLimit-Policy"); response.StatusCode != http.StatusOK || !policy.MatchString(got) {
			t.Errorf("%d %s: policy %q", response.StatusCode, answer, got)
		}
		if got := response.Header.Get("RateLimit"); !limits.MatchString(got) {
			t.Errorf("limits %q", got)
		}
		if !strings.Contains(answer, `"remaining":"`+remaining+`"`) {
			t.Errorf("got %s", answer)
		}
	}
	response, answer := consume("denied")
	retry, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if response.StatusCode != http.StatusTooManyRequests || err != nil || retry < 3000 || retry > 3660 ||
		!strings.HasPrefix(response.Header.Get("RateLimit"), `"slides.hour";r=0;t=`) {
		t.Errorf("%d %s: %v", response.StatusCode, answer, response.Header)
	}
	for _, part := range []string{`"resource_exhausted"`, `"google.rpc.QuotaFailure"`, `"quotaId":"slides.hour"`, `"google.rpc.RetryInfo"`} {
		if !strings.Contains(answer, part) {
			t.Errorf("no %s in %s", part, answer)
		}
	}

	// Over gRPC they are left out.
	var header metadata.MD
	if _, err := v1.NewQuotaServiceClient(b.conn).ConsumeQuota(b.ctx, &v1.ConsumeQuotaRequest{OperationId: "0", UserId: "ann", ToolId: "slides", Tokens: proto.Int64(10)},
		grpc.Header(&header)); err != nil || len(header.Get("RateLimit")) > 0 {
		t.Errorf("got %v %v", header, err)
	}
}
