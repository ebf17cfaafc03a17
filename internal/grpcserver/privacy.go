package grpcserver

import (
	"context"
	"time"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/erasure"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/replica"
)

type privacyServer struct {
	toolgrantv1.UnimplementedPrivacyServiceServer
	store   erasure.Store
	replica *replica.Replica
	gate    *quota.Gate
	now     func() time.Time
}

// EraseUser implements the RPC.
func (s *privacyServer) EraseUser(ctx context.Context, r *toolgrantv1.EraseUserRequest) (*toolgrantv1.EraseUserResponse, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	// Limits of the user's own don't matter: what was used is forgotten, whatever the limit.
	rules := s.replica.World().Catalog.UserRules()
	erased, at, err := erasure.Erase(ctx, erasure.Request{User: id.User(r.GetUserId()), KeepHistory: r.GetKeepQuotaHistory(), DryRun: r.GetDryRun()},
		s.store, s.gate, rules)
	if err != nil {
		return nil, err
	}
	response := &toolgrantv1.EraseUserResponse{Revision: at.String()}
	for _, e := range erased {
		response.Erased = append(response.Erased, &toolgrantv1.ErasedRows{Kind: e.Kind, Count: e.Count})
	}
	return response, nil
}
