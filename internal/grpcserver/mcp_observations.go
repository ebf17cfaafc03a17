package grpcserver

import (
	"context"
	gostrings "strings"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/pin"
)

// observed is a difference of a tool type's server.
type observed struct {
	toolType    *catalog.ToolType
	observation *catalog.Observation
}

// key orders differences as they are listed: no character of an id or a name is less than a space.
func (o observed) key() string { return string(o.toolType.ID) + " " + o.observation.Name }

// ListMcpObservations implements the RPC.
func (s *catalogServer) ListMcpObservations(ctx context.Context, r *toolgrantv1.ListMcpObservationsRequest) (*toolgrantv1.ListMcpObservationsResponse, error) {
	list := "mcp_observations:" + r.GetToolTypeId()
	after, size, err := openPage(list, r)
	if err != nil {
		return nil, err
	}
	stored, at, err := s.store.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkConsistency(r.GetConsistency(), at); err != nil {
		return nil, err
	}
	var all []observed
	for i := range stored.ToolTypes { // in the order of ids
		t := &stored.ToolTypes[i]
		if r.GetToolTypeId() != "" && string(t.ID) != r.GetToolTypeId() {
			continue
		}
		for j := range t.Observations { // in the order of names
			if t.Difference(&t.Observations[j]) != catalog.DifferenceNone {
				all = append(all, observed{t, &t.Observations[j]})
			}
		}
	}
	page, next := closePage(following(all, observed.key, after, size+1), size, list, observed.key)
	response := &toolgrantv1.ListMcpObservationsResponse{NextPageToken: next, Revision: at.String()}
	names := map[id.ToolType]pin.Names{}
	for _, o := range page {
		if _, known := names[o.toolType.ID]; !known {
			names[o.toolType.ID] = namesOf(o.toolType)
		}
		p, err := observationToProto(o, names[o.toolType.ID])
		if err != nil {
			return nil, err
		}
		response.Observations = append(response.Observations, p)
	}
	return response, nil
}

// namesOf are the names of a tool type's functions, and of those that its server has besides.
func namesOf(t *catalog.ToolType) pin.Names {
	var seen []catalog.Function
	for _, o := range t.Observations {
		if o.Function != nil {
			seen = append(seen, *o.Function)
		}
	}
	return pin.NamesOf(t.Functions, seen)
}

func observationToProto(o observed, names pin.Names) (*toolgrantv1.McpObservation, error) {
	p := &toolgrantv1.McpObservation{ToolTypeId: string(o.toolType.ID), Name: o.observation.Name,
		Difference: differenceToProto(o.toolType.Difference(o.observation)), ObserveTime: timeToProto(o.observation.Since)}
	if f := o.toolType.Pinned(o.observation.Name); f != nil {
		pinned, err := functionsToProto([]catalog.Function{*f})
		if err != nil {
			return nil, err
		}
		p.Pinned = pinned[0]
	}
	if f := o.observation.Function; f != nil {
		seen, err := functionsToProto([]catalog.Function{*f})
		if err != nil {
			return nil, err
		}
		p.Observed, p.Findings = seen[0], pin.Inspect(f, names)
	}
	return p, nil
}

func differenceToProto(d catalog.Difference) toolgrantv1.McpDifference {
	return toolgrantv1.McpDifference(toolgrantv1.McpDifference_value["MCP_DIFFERENCE_"+string(d)])
}

// ApproveMcpFunctions implements the RPC.
func (s *catalogServer) ApproveMcpFunctions(ctx context.Context, r *toolgrantv1.ApproveMcpFunctionsRequest) (*toolgrantv1.ApproveMcpFunctionsResponse, error) {
	var approvals []pin.Approval
	for _, f := range r.GetFunctions() {
		approvals = append(approvals, pin.Approval{Name: f.GetName(), Digest: f.GetDigest()})
	}
	toolType, w, err := toolTypes.write(ctx, s.backend, r.GetToolTypeId(), func(stored admin.Manifest) (edit admin.Edit, object catalog.ToolType, err error) {
		object, exists := toolTypes.find(&stored, r.GetToolTypeId())
		if !exists {
			return edit, object, fault.Missing("tool_type", r.GetToolTypeId())
		}
		functions, outdated := pin.Approve(&object, approvals)
		if len(outdated) > 0 {
			return edit, object, &fault.Fault{Kind: fault.Aborted, Reason: fault.ReasonEtagMismatch,
				Message: "look again: these differ no longer, or otherwise: " + gostrings.Join(outdated, ", ")}
		}
		object.Functions = functions
		return admin.Edit{Manifest: toolTypes.manifest(object), Approval: true}, object, nil
	})
	return &toolgrantv1.ApproveMcpFunctionsResponse{ToolType: toolType, Revision: w.revision}, err
}
