package grpcserver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// Deadlines strike anywhere between the first byte and the last. What is answered nevertheless is whole.
func TestAnAnswerIsWholeOrAnError(t *testing.T) {
	ctx, c := setup(t)
	ask := func(ctx context.Context, chat string) (*v1.ResolveToolsResponse, error) {
		r, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: chat, UserId: "bob", Surface: web, View: v1.ToolView_TOOL_VIEW_FULL})
		if r != nil {
			r.Revision = ""
		}
		return r, err
	}
	want, err := ask(ctx, "whole")
	if err != nil {
		t.Fatal(err)
	}
	answers, late := 0, 0
	for i := range 2000 {
		short, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(1500))*time.Microsecond)
		got, err := ask(short, fmt.Sprint("cold-", i)) // its chat has to be looked up
		cancel()
		switch {
		case err == nil && proto.Equal(got, want):
			answers++
		case status.Code(err) == codes.DeadlineExceeded:
			late++
		default:
			t.Fatalf("%v, %v", got, err)
		}
	}
	t.Logf("%d whole answers, %d errors", answers, late)
	if late == 0 {
		t.Error("no deadline struck")
	}
}
