package grpcserver

import (
	"cmp"
	"context"
	gostrings "strings"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// RoutingStore keeps routing modes.
type RoutingStore interface {
	// SetRoutingMode sets the mode of a group's users, or of all other users (the empty group); an empty mode takes back
	// what was set.
	SetRoutingMode(context.Context, id.Group, routing.Mode) (revision.Revision, error)
}

const routingModePrefix = "ROUTING_MODE_"

func routingModeToProto(m routing.Mode) toolgrantv1.RoutingMode {
	return toolgrantv1.RoutingMode(toolgrantv1.RoutingMode_value[routingModePrefix+string(m)])
}

// routingModeFromProto returns an empty mode for an unset one.
func routingModeFromProto(m toolgrantv1.RoutingMode) routing.Mode {
	if m == toolgrantv1.RoutingMode_ROUTING_MODE_UNSPECIFIED {
		return ""
	}
	return routing.Mode(gostrings.TrimPrefix(m.String(), routingModePrefix))
}

// modeOf is the mode that counts for who asks.
func modeOf(w *effective.World, q *effective.Question) routing.Mode {
	return w.Routing.Of(func() []id.Group { return activeGroups(q) })
}

// SetRoutingMode implements the RPC.
func (s *discoveryServer) SetRoutingMode(ctx context.Context, r *toolgrantv1.SetRoutingModeRequest) (*toolgrantv1.SetRoutingModeResponse, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	at, err := s.store.SetRoutingMode(ctx, id.Group(r.GetGroupId()), routingModeFromProto(r.GetMode()))
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.SetRoutingModeResponse{Revision: at.String()}, nil
}

const routingModesList = "routing_modes"

// ListRoutingModes implements the RPC.
func (s *discoveryServer) ListRoutingModes(ctx context.Context, r *toolgrantv1.ListRoutingModesRequest) (*toolgrantv1.ListRoutingModesResponse, error) {
	after, size, err := openPage(routingModesList, r)
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
	name := func(set routing.Set) string { return cmp.Or(string(set.Group), audit.EverybodyElse) }
	sets := following(stored.Routing, name, after, size+1)
	response := &toolgrantv1.ListRoutingModesResponse{Revision: at.String()}
	sets, response.NextPageToken = closePage(sets, size, routingModesList, name)
	for _, set := range sets {
		response.Modes = append(response.Modes, &toolgrantv1.RoutingModeSetting{GroupId: string(set.Group), Mode: routingModeToProto(set.Mode)})
	}
	return response, nil
}
