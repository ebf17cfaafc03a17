package grpcserver

import (
	"context"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// CreateDevice implements the RPC.
func (s *availabilityServer) CreateDevice(ctx context.Context, r *toolgrantv1.CreateDeviceRequest) (*toolgrantv1.CreateDeviceResponse, error) {
	device, revision, err := devices.create(ctx, s.backend, r.GetUserId(), r.GetDevice())
	return &toolgrantv1.CreateDeviceResponse{Device: device, Revision: revision}, err
}

// GetDevice implements the RPC.
func (s *availabilityServer) GetDevice(ctx context.Context, r *toolgrantv1.GetDeviceRequest) (*toolgrantv1.GetDeviceResponse, error) {
	device, revision, err := devices.get(ctx, s.backend, r.GetUserId(), r.GetDeviceId(), r.GetConsistency())
	return &toolgrantv1.GetDeviceResponse{Device: device, Revision: revision}, err
}

// ListDevices implements the RPC.
func (s *availabilityServer) ListDevices(ctx context.Context, r *toolgrantv1.ListDevicesRequest) (*toolgrantv1.ListDevicesResponse, error) {
	list, at, err := devices.list(ctx, s.backend, r.GetUserId(), r)
	return &toolgrantv1.ListDevicesResponse{Devices: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateDevice implements the RPC.
func (s *availabilityServer) UpdateDevice(ctx context.Context, r *toolgrantv1.UpdateDeviceRequest) (*toolgrantv1.UpdateDeviceResponse, error) {
	device, revision, err := devices.update(ctx, s.backend, r.GetUserId(), r.GetDevice(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateDeviceResponse{Device: device, Revision: revision}, err
}

// DeleteDevice implements the RPC.
func (s *availabilityServer) DeleteDevice(ctx context.Context, r *toolgrantv1.DeleteDeviceRequest) (*toolgrantv1.DeleteDeviceResponse, error) {
	revision, err := devices.delete(ctx, s.backend, r.GetUserId(), r.GetDeviceId(), r.GetAllowMissing())
	return &toolgrantv1.DeleteDeviceResponse{Revision: revision}, err
}

// CreateMembership implements the RPC.
func (s *availabilityServer) CreateMembership(ctx context.Context, r *toolgrantv1.CreateMembershipRequest) (*toolgrantv1.CreateMembershipResponse, error) {
	membership, revision, err := memberships.create(ctx, s.backend, r.GetUserId(), r.GetMembership())
	return &toolgrantv1.CreateMembershipResponse{Membership: membership, Revision: revision}, err
}

// GetMembership implements the RPC.
func (s *availabilityServer) GetMembership(ctx context.Context, r *toolgrantv1.GetMembershipRequest) (*toolgrantv1.GetMembershipResponse, error) {
	membership, revision, err := memberships.get(ctx, s.backend, r.GetUserId(), r.GetGroupId(), r.GetConsistency())
	return &toolgrantv1.GetMembershipResponse{Membership: membership, Revision: revision}, err
}

// ListMemberships implements the RPC.
func (s *availabilityServer) ListMemberships(ctx context.Context, r *toolgrantv1.ListMembershipsRequest) (*toolgrantv1.ListMembershipsResponse, error) {
	list, at, err := memberships.list(ctx, s.backend, r.GetUserId(), r)
	return &toolgrantv1.ListMembershipsResponse{Memberships: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateMembership implements the RPC.
func (s *availabilityServer) UpdateMembership(ctx context.Context, r *toolgrantv1.UpdateMembershipRequest) (*toolgrantv1.UpdateMembershipResponse, error) {
	membership, revision, err := memberships.update(ctx, s.backend, r.GetUserId(), r.GetMembership(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateMembershipResponse{Membership: membership, Revision: revision}, err
}

// DeleteMembership implements the RPC.
func (s *availabilityServer) DeleteMembership(ctx context.Context, r *toolgrantv1.DeleteMembershipRequest) (*toolgrantv1.DeleteMembershipResponse, error) {
	revision, err := memberships.delete(ctx, s.backend, r.GetUserId(), r.GetGroupId(), r.GetAllowMissing())
	return &toolgrantv1.DeleteMembershipResponse{Revision: revision}, err
}
