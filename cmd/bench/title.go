package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// title is a tool's title that is changed again and again: the smallest change of the catalogue.
type title struct {
	tool, before string
}

func titleOf(ctx context.Context, conn *grpc.ClientConn, tool string) (*title, error) {
	response, err := toolgrantv1.NewCatalogServiceClient(conn).GetTool(ctx, &toolgrantv1.GetToolRequest{ToolId: tool})
	if err != nil {
		return nil, fmt.Errorf("%w (was the world loaded with these sizes and this seed?)", err)
	}
	return &title{tool, response.GetTool().GetTitle()}, nil
}

// set sets the title on a server, and returns the write's revision.
func (t *title) set(ctx context.Context, conn *grpc.ClientConn, text string) (revision string, err error) {
	response, err := toolgrantv1.NewCatalogServiceClient(conn).UpdateTool(ctx, &toolgrantv1.UpdateToolRequest{
		Tool: &toolgrantv1.Tool{ToolId: t.tool, Title: text}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"title"}}})
	return response.GetRevision(), err
}

// restore sets the title as it was, also when ctx has ended: the world must stay what it is.
func (t *title) restore(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if _, err := t.set(ctx, conn, t.before); err != nil {
		return fmt.Errorf("tool %s keeps a title that is not the world's: %w", t.tool, err)
	}
	return nil
}
