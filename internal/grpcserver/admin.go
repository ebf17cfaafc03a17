package grpcserver

import (
	"context"

	"buf.build/go/protovalidate"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/fault"
)

type adminServer struct {
	toolgrantv1.UnimplementedAdminServiceServer
	store     Store
	validator protovalidate.Validator
}

// ApplyManifest implements the RPC. The rules of the protos are checked here and not by the interceptor, so
// that one answer holds their faults and those of the references.
func (s *adminServer) ApplyManifest(ctx context.Context, r *toolgrantv1.ApplyManifestRequest) (*toolgrantv1.ApplyManifestResponse, error) {
	violations, err := violationsOf(s.validator, r.GetManifest())
	if err != nil {
		return nil, err
	}
	manifest := manifestFromProto(r.GetManifest())
	// With faults already known nothing is written: the dry run only finds the others.
	changes, revision, err := s.store.ApplyManifest(ctx, manifest, r.GetPrune(), r.GetDryRun() || len(violations) > 0)
	if len(violations) > 0 {
		if f, ok := fault.As(err); ok && f.Reason == fault.ReasonInvalidRequest {
			violations = append(violations, f.Violations...)
		}
		return nil, fault.Invalid(distinct(violations)...)
	}
	if err != nil {
		return nil, err
	}
	response := &toolgrantv1.ApplyManifestResponse{Revision: revision, Warnings: warnings(r.GetManifest())}
	for _, c := range changes {
		p := &toolgrantv1.Change{Section: string(c.Section), Id: c.ID,
			Action: toolgrantv1.ChangeAction(toolgrantv1.ChangeAction_value["CHANGE_ACTION_"+string(c.Action)])}
		for _, f := range c.Fields {
			p.Fields = append(p.Fields, &toolgrantv1.FieldChange{Field: f.Field, Before: f.Before, After: f.After})
		}
		response.Changes = append(response.Changes, p)
	}
	return response, nil
}

// distinct leaves one fault per field: the first, which names the plainer rule.
func distinct(violations []fault.Violation) []fault.Violation {
	seen := map[string]bool{}
	var first []fault.Violation
	for _, v := range violations {
		if !seen[v.Field] {
			seen[v.Field] = true
			first = append(first, v)
		}
	}
	return first
}

// ExportManifest implements the RPC.
func (s *adminServer) ExportManifest(ctx context.Context, r *toolgrantv1.ExportManifestRequest) (*toolgrantv1.ExportManifestResponse, error) {
	manifest, revision, err := s.store.ExportManifest(ctx, r.GetOmitUsers())
	if err != nil {
		return nil, err
	}
	exported, err := manifestToProto(&manifest)
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.ExportManifestResponse{Manifest: exported, Revision: revision}, nil
}
