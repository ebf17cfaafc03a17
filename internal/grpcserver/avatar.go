package grpcserver

import (
	"context"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

type avatarServer struct {
	toolgrantv1.UnimplementedAvatarServiceServer
	*backend
}

// CreateAvatar implements the RPC.
func (s *avatarServer) CreateAvatar(ctx context.Context, r *toolgrantv1.CreateAvatarRequest) (*toolgrantv1.CreateAvatarResponse, error) {
	avatar, w, err := avatars.create(ctx, s.backend, r.GetAvatar())
	return &toolgrantv1.CreateAvatarResponse{Avatar: avatar, Revision: w.revision, Warnings: w.warnings}, err
}

// GetAvatar implements the RPC.
func (s *avatarServer) GetAvatar(ctx context.Context, r *toolgrantv1.GetAvatarRequest) (*toolgrantv1.GetAvatarResponse, error) {
	avatar, revision, err := avatars.get(ctx, s.backend, r.GetAvatarId(), r.GetConsistency())
	return &toolgrantv1.GetAvatarResponse{Avatar: avatar, Revision: revision}, err
}

// ListAvatars implements the RPC.
func (s *avatarServer) ListAvatars(ctx context.Context, r *toolgrantv1.ListAvatarsRequest) (*toolgrantv1.ListAvatarsResponse, error) {
	list, at, err := avatars.list(ctx, s.backend, r)
	return &toolgrantv1.ListAvatarsResponse{Avatars: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateAvatar implements the RPC.
func (s *avatarServer) UpdateAvatar(ctx context.Context, r *toolgrantv1.UpdateAvatarRequest) (*toolgrantv1.UpdateAvatarResponse, error) {
	avatar, w, err := avatars.update(ctx, s.backend, r.GetAvatar(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateAvatarResponse{Avatar: avatar, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteAvatar implements the RPC.
func (s *avatarServer) DeleteAvatar(ctx context.Context, r *toolgrantv1.DeleteAvatarRequest) (*toolgrantv1.DeleteAvatarResponse, error) {
	revision, err := avatars.delete(ctx, s.backend, r.GetAvatarId(), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteAvatarResponse{Revision: revision}, err
}

// CreateDefaultAvatar implements the RPC.
func (s *avatarServer) CreateDefaultAvatar(ctx context.Context, r *toolgrantv1.CreateDefaultAvatarRequest) (*toolgrantv1.CreateDefaultAvatarResponse, error) {
	row, w, err := defaultAvatars.create(ctx, s.backend, r.GetDefaultAvatar())
	return &toolgrantv1.CreateDefaultAvatarResponse{DefaultAvatar: row, Revision: w.revision, Warnings: w.warnings}, err
}

// GetDefaultAvatar implements the RPC.
func (s *avatarServer) GetDefaultAvatar(ctx context.Context, r *toolgrantv1.GetDefaultAvatarRequest) (*toolgrantv1.GetDefaultAvatarResponse, error) {
	row, revision, err := defaultAvatars.get(ctx, s.backend, defaultAvatarName(r), r.GetConsistency())
	return &toolgrantv1.GetDefaultAvatarResponse{DefaultAvatar: row, Revision: revision}, err
}

// ListDefaultAvatars implements the RPC.
func (s *avatarServer) ListDefaultAvatars(ctx context.Context, r *toolgrantv1.ListDefaultAvatarsRequest) (*toolgrantv1.ListDefaultAvatarsResponse, error) {
	list, at, err := defaultAvatars.list(ctx, s.backend, r)
	return &toolgrantv1.ListDefaultAvatarsResponse{DefaultAvatars: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateDefaultAvatar implements the RPC.
func (s *avatarServer) UpdateDefaultAvatar(ctx context.Context, r *toolgrantv1.UpdateDefaultAvatarRequest) (*toolgrantv1.UpdateDefaultAvatarResponse, error) {
	row, w, err := defaultAvatars.update(ctx, s.backend, r.GetDefaultAvatar(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateDefaultAvatarResponse{DefaultAvatar: row, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteDefaultAvatar implements the RPC.
func (s *avatarServer) DeleteDefaultAvatar(ctx context.Context, r *toolgrantv1.DeleteDefaultAvatarRequest) (*toolgrantv1.DeleteDefaultAvatarResponse, error) {
	revision, err := defaultAvatars.delete(ctx, s.backend, defaultAvatarName(r), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteDefaultAvatarResponse{Revision: revision}, err
}

// defaultAvatarName names the row that a request is about.
func defaultAvatarName(r interface {
	GetUserId() string
	GetDeviceTypeId() string
}) string {
	return admin.DefaultAvatarID(enable.DefaultAvatar{User: id.User(r.GetUserId()), DeviceType: id.DeviceType(r.GetDeviceTypeId())})
}
