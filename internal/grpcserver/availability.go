package grpcserver

import (
	"context"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
)

type availabilityServer struct {
	toolgrantv1.UnimplementedAvailabilityServiceServer
	*backend
}

// CreateDeviceType implements the RPC.
func (s *availabilityServer) CreateDeviceType(ctx context.Context, r *toolgrantv1.CreateDeviceTypeRequest) (*toolgrantv1.CreateDeviceTypeResponse, error) {
	deviceType, w, err := deviceTypes.create(ctx, s.backend, r.GetDeviceType())
	return &toolgrantv1.CreateDeviceTypeResponse{DeviceType: deviceType, Revision: w.revision, Warnings: w.warnings}, err
}

// GetDeviceType implements the RPC.
func (s *availabilityServer) GetDeviceType(ctx context.Context, r *toolgrantv1.GetDeviceTypeRequest) (*toolgrantv1.GetDeviceTypeResponse, error) {
	deviceType, revision, err := deviceTypes.get(ctx, s.backend, r.GetDeviceTypeId(), r.GetConsistency())
	return &toolgrantv1.GetDeviceTypeResponse{DeviceType: deviceType, Revision: revision}, err
}

// ListDeviceTypes implements the RPC.
func (s *availabilityServer) ListDeviceTypes(ctx context.Context, r *toolgrantv1.ListDeviceTypesRequest) (*toolgrantv1.ListDeviceTypesResponse, error) {
	list, at, err := deviceTypes.list(ctx, s.backend, r)
	return &toolgrantv1.ListDeviceTypesResponse{DeviceTypes: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateDeviceType implements the RPC.
func (s *availabilityServer) UpdateDeviceType(ctx context.Context, r *toolgrantv1.UpdateDeviceTypeRequest) (*toolgrantv1.UpdateDeviceTypeResponse, error) {
	deviceType, w, err := deviceTypes.update(ctx, s.backend, r.GetDeviceType(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateDeviceTypeResponse{DeviceType: deviceType, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteDeviceType implements the RPC.
func (s *availabilityServer) DeleteDeviceType(ctx context.Context, r *toolgrantv1.DeleteDeviceTypeRequest) (*toolgrantv1.DeleteDeviceTypeResponse, error) {
	revision, err := deviceTypes.delete(ctx, s.backend, r.GetDeviceTypeId(), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteDeviceTypeResponse{Revision: revision}, err
}

// CreateGroup implements the RPC.
func (s *availabilityServer) CreateGroup(ctx context.Context, r *toolgrantv1.CreateGroupRequest) (*toolgrantv1.CreateGroupResponse, error) {
	group, w, err := groups.create(ctx, s.backend, r.GetGroup())
	return &toolgrantv1.CreateGroupResponse{Group: group, Revision: w.revision, Warnings: w.warnings}, err
}

// GetGroup implements the RPC.
func (s *availabilityServer) GetGroup(ctx context.Context, r *toolgrantv1.GetGroupRequest) (*toolgrantv1.GetGroupResponse, error) {
	group, revision, err := groups.get(ctx, s.backend, r.GetGroupId(), r.GetConsistency())
	return &toolgrantv1.GetGroupResponse{Group: group, Revision: revision}, err
}

// ListGroups implements the RPC.
func (s *availabilityServer) ListGroups(ctx context.Context, r *toolgrantv1.ListGroupsRequest) (*toolgrantv1.ListGroupsResponse, error) {
	list, at, err := groups.list(ctx, s.backend, r)
	return &toolgrantv1.ListGroupsResponse{Groups: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateGroup implements the RPC.
func (s *availabilityServer) UpdateGroup(ctx context.Context, r *toolgrantv1.UpdateGroupRequest) (*toolgrantv1.UpdateGroupResponse, error) {
	group, w, err := groups.update(ctx, s.backend, r.GetGroup(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateGroupResponse{Group: group, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteGroup implements the RPC.
func (s *availabilityServer) DeleteGroup(ctx context.Context, r *toolgrantv1.DeleteGroupRequest) (*toolgrantv1.DeleteGroupResponse, error) {
	revision, err := groups.delete(ctx, s.backend, r.GetGroupId(), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteGroupResponse{Revision: revision}, err
}

// CreateUser implements the RPC.
func (s *availabilityServer) CreateUser(ctx context.Context, r *toolgrantv1.CreateUserRequest) (*toolgrantv1.CreateUserResponse, error) {
	user, w, err := users.create(ctx, s.backend, r.GetUser())
	return &toolgrantv1.CreateUserResponse{User: user, Revision: w.revision, Warnings: w.warnings}, err
}

// GetUser implements the RPC.
func (s *availabilityServer) GetUser(ctx context.Context, r *toolgrantv1.GetUserRequest) (*toolgrantv1.GetUserResponse, error) {
	found, at, err := s.store.User(ctx, id.User(r.GetUserId()))
	if err != nil {
		return nil, err
	}
	if err := checkConsistency(r.GetConsistency(), at); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.Missing("user", r.GetUserId())
	}
	user, err := users.withEtag(*found)
	return &toolgrantv1.GetUserResponse{User: user, Revision: at.String()}, err
}

// ListUsers implements the RPC.
func (s *availabilityServer) ListUsers(ctx context.Context, r *toolgrantv1.ListUsersRequest) (*toolgrantv1.ListUsersResponse, error) {
	list, at, err := users.pageOf(s.backend, r, func(after string, atMost int32) ([]availability.User, revision.Revision, error) {
		return s.store.Users(ctx, id.User(after), atMost)
	})
	return &toolgrantv1.ListUsersResponse{Users: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateUser implements the RPC.
func (s *availabilityServer) UpdateUser(ctx context.Context, r *toolgrantv1.UpdateUserRequest) (*toolgrantv1.UpdateUserResponse, error) {
	user, w, err := users.update(ctx, s.backend, r.GetUser(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateUserResponse{User: user, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteUser implements the RPC.
func (s *availabilityServer) DeleteUser(ctx context.Context, r *toolgrantv1.DeleteUserRequest) (*toolgrantv1.DeleteUserResponse, error) {
	revision, err := users.delete(ctx, s.backend, r.GetUserId(), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteUserResponse{Revision: revision}, err
}
