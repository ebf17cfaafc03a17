package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const quotaPrefix = "bench-quota"

// Tools, by their rules.
const (
	ruleNone   = quotaPrefix + ".none"
	ruleUser   = quotaPrefix + ".user"
	ruleThree  = quotaPrefix + ".three"
	ruleSystem = quotaPrefix + ".system"
)

// quotaTool is a tool of which calls are consumed.
type quotaTool struct {
	id, name string
	scopes   []toolgrantv1.QuotaScope
}

var quotaTools = []quotaTool{
	{ruleNone, "no rule", nil},
	{ruleUser, "user", []toolgrantv1.QuotaScope{toolgrantv1.QuotaScope_QUOTA_SCOPE_USER}},
	{ruleThree, "user, node, system", []toolgrantv1.QuotaScope{toolgrantv1.QuotaScope_QUOTA_SCOPE_USER,
		toolgrantv1.QuotaScope_QUOTA_SCOPE_NODE, toolgrantv1.QuotaScope_QUOTA_SCOPE_SYSTEM}},
	{ruleSystem, "system", []toolgrantv1.QuotaScope{toolgrantv1.QuotaScope_QUOTA_SCOPE_SYSTEM}},
}

// writeQuotaWorld writes the tools, with limits that nobody reaches, and the users.
func writeQuotaWorld(ctx context.Context, conn *grpc.ClientConn, users int) error {
	for _, manifest := range batches(quotaObjects(users)) {
		if _, err := toolgrantv1.NewAdminServiceClient(conn).ApplyManifest(ctx, &toolgrantv1.ApplyManifestRequest{Manifest: manifest}); err != nil {
			return fmt.Errorf("ApplyManifest: %w", err)
		}
	}
	return nil
}

func quotaObjects(users int) iter.Seq[*toolgrantv1.Manifest] {
	return func(yield func(*toolgrantv1.Manifest) bool) {
		catalogue := &toolgrantv1.Manifest{ToolTypes: []*toolgrantv1.ToolType{{ToolTypeId: quotaPrefix, Source: toolgrantv1.ToolSource_TOOL_SOURCE_NATIVE}}}
		for _, t := range quotaTools {
			tool := &toolgrantv1.Tool{ToolId: t.id, ToolTypeId: quotaPrefix, Name: t.id}
			for _, scope := range t.scopes {
				tool.Quotas = append(tool.Quotas, &toolgrantv1.Quota{QuotaId: t.id + "/" + scope.String(), Scope: scope,
					Unit: toolgrantv1.QuotaUnit_QUOTA_UNIT_CALLS, Limit: 1_000_000_000_000,
					Window: &toolgrantv1.QuotaWindow{Kind: &toolgrantv1.QuotaWindow_Fixed{Fixed: durationpb.New(time.Minute)}}})
			}
			catalogue.Tools = append(catalogue.Tools, tool)
		}
		if !yield(catalogue) {
			return
		}
		for i := range users {
			if !yield(&toolgrantv1.Manifest{Users: []*toolgrantv1.User{{UserId: quotaUser(i)}}}) {
				return
			}
		}
	}
}

func quotaUser(i int) string { return quotaPrefix + "-" + strconv.Itoa(i) }

// consumptions are requests, no two of them of one operation, also among several runs of this program.
type consumptions struct {
	run   string
	users []string
}

func newConsumptions(users int) *consumptions {
	c := &consumptions{run: strconv.FormatInt(time.Now().UnixNano(), 36)}
	for i := range users {
		c.users = append(c.users, quotaUser(i))
	}
	return c
}

// one is a worker's n-th request of a run.
func (c *consumptions) one(tool string, worker, run, n int) *toolgrantv1.ConsumeQuotaRequest {
	operation := append(make([]byte, 0, 48), c.run...)
	for _, part := range []int{run, worker, n} {
		operation = strconv.AppendInt(append(operation, '-'), int64(part), 36)
	}
	return &toolgrantv1.ConsumeQuotaRequest{OperationId: string(operation) + tool[len(quotaPrefix):],
		UserId: c.users[(worker*7919+n)%len(c.users)], ToolId: tool}
}

// asker consumes calls of a tool on connections.
func (c *consumptions) asker(conns []*grpc.ClientConn, tool string) asker {
	return func(worker, run int) func(context.Context) error {
		client, n := toolgrantv1.NewQuotaServiceClient(conns[worker%len(conns)]), 0
		return func(ctx context.Context) error {
			n++
			_, err := client.ConsumeQuota(ctx, c.one(tool, worker, run, n))
			return err
		}
	}
}

// exchangeOf asks a question once, and keeps what is on the wire.
func exchangeOf(ctx context.Context, conn *grpc.ClientConn, method string, question proto.Message) (e exchange, err error) {
	if e.Question, err = proto.Marshal(question); err != nil {
		return e, err
	}
	for range 10 { // a server that just started on a busy machine may not have reached its Redis in time
		if err = conn.Invoke(ctx, method, &e.Question, &e.Answer, grpc.ForceCodecV2(rawCodec{}), grpc.WaitForReady(true)); status.Code(err) != codes.Unavailable {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return e, err
}
