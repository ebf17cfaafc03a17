package grpcserver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/revision"
)

type adminServer struct {
	toolgrantv1.UnimplementedAdminServiceServer
	*backend
}

// ApplyManifest implements the RPC. The rules of the protos are checked here and not by the interceptor, so
// that one answer holds their faults and those of the references.
func (s *adminServer) ApplyManifest(ctx context.Context, r *toolgrantv1.ApplyManifestRequest) (*toolgrantv1.ApplyManifestResponse, error) {
	violations, err := violationsOf(s.validator, r.GetManifest())
	if err != nil {
		return nil, err
	}
	edit := editFromProto(r.GetManifest())
	edit.Prune = r.GetPrune()
	decide := func(admin.Manifest) (admin.Edit, error) { return edit, nil }
	var changes []admin.Change
	var at revision.Revision
	if r.GetDryRun() || len(violations) > 0 { // with faults already known, it only finds the others
		changes, at, err = s.store.Preview(ctx, decide)
	} else {
		changes, at, err = s.edit(ctx, nil, decide)
	}
	if len(violations) > 0 {
		if f, ok := fault.As(err); ok && (f.Reason == fault.ReasonInvalidRequest || f.Reason == fault.ReasonInUse) {
			violations = append(violations, f.Violations...)
		}
		return nil, fault.Invalid(distinct(violations)...)
	}
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.ApplyManifestResponse{Changes: changesToProto(changes), Revision: at.String(), Warnings: warningsOf(r.GetManifest())}, nil
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
	read := s.store.Export
	if r.GetOmitUsers() {
		read = s.store.Definitions
	}
	stored, at, err := read(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkConsistency(r.GetConsistency(), at); err != nil {
		return nil, err
	}
	manifest, err := manifestToProto(&stored)
	if err != nil {
		return nil, err
	}
	response := &toolgrantv1.ExportManifestResponse{Manifest: manifest, Revision: at.String()}
	if size := proto.Size(response); size > maxMessageBytes {
		return nil, &fault.Fault{Kind: fault.ResourceExhausted, Reason: fault.ReasonTooLarge,
			Message: fmt.Sprintf("the manifest has %d bytes, and a message at most %d: omit the users and list them", size, maxMessageBytes)}
	}
	return response, nil
}
