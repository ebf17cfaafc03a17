package grpcserver

import (
	"context"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

type catalogServer struct {
	toolgrantv1.UnimplementedCatalogServiceServer
	*backend
}

// CreateToolType implements the RPC.
func (s *catalogServer) CreateToolType(ctx context.Context, r *toolgrantv1.CreateToolTypeRequest) (*toolgrantv1.CreateToolTypeResponse, error) {
	toolType, w, err := toolTypes.create(ctx, s.backend, r.GetToolType())
	return &toolgrantv1.CreateToolTypeResponse{ToolType: toolType, Revision: w.revision, Warnings: w.warnings}, err
}

// GetToolType implements the RPC.
func (s *catalogServer) GetToolType(ctx context.Context, r *toolgrantv1.GetToolTypeRequest) (*toolgrantv1.GetToolTypeResponse, error) {
	toolType, revision, err := toolTypes.get(ctx, s.backend, r.GetToolTypeId(), r.GetConsistency())
	return &toolgrantv1.GetToolTypeResponse{ToolType: toolType, Revision: revision}, err
}

// ListToolTypes implements the RPC.
func (s *catalogServer) ListToolTypes(ctx context.Context, r *toolgrantv1.ListToolTypesRequest) (*toolgrantv1.ListToolTypesResponse, error) {
	list, at, err := toolTypes.list(ctx, s.backend, r)
	return &toolgrantv1.ListToolTypesResponse{ToolTypes: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateToolType implements the RPC.
func (s *catalogServer) UpdateToolType(ctx context.Context, r *toolgrantv1.UpdateToolTypeRequest) (*toolgrantv1.UpdateToolTypeResponse, error) {
	toolType, w, err := toolTypes.update(ctx, s.backend, r.GetToolType(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateToolTypeResponse{ToolType: toolType, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteToolType implements the RPC.
func (s *catalogServer) DeleteToolType(ctx context.Context, r *toolgrantv1.DeleteToolTypeRequest) (*toolgrantv1.DeleteToolTypeResponse, error) {
	revision, err := toolTypes.delete(ctx, s.backend, r.GetToolTypeId(), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteToolTypeResponse{Revision: revision}, err
}

// CreateTool implements the RPC.
func (s *catalogServer) CreateTool(ctx context.Context, r *toolgrantv1.CreateToolRequest) (*toolgrantv1.CreateToolResponse, error) {
	tool, w, err := tools.create(ctx, s.backend, r.GetTool())
	return &toolgrantv1.CreateToolResponse{Tool: tool, Revision: w.revision, Warnings: w.warnings}, err
}

// GetTool implements the RPC.
func (s *catalogServer) GetTool(ctx context.Context, r *toolgrantv1.GetToolRequest) (*toolgrantv1.GetToolResponse, error) {
	tool, revision, err := tools.get(ctx, s.backend, r.GetToolId(), r.GetConsistency())
	return &toolgrantv1.GetToolResponse{Tool: tool, Revision: revision}, err
}

// ListTools implements the RPC.
func (s *catalogServer) ListTools(ctx context.Context, r *toolgrantv1.ListToolsRequest) (*toolgrantv1.ListToolsResponse, error) {
	list, at, err := tools.list(ctx, s.backend, r)
	return &toolgrantv1.ListToolsResponse{Tools: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateTool implements the RPC.
func (s *catalogServer) UpdateTool(ctx context.Context, r *toolgrantv1.UpdateToolRequest) (*toolgrantv1.UpdateToolResponse, error) {
	tool, w, err := tools.update(ctx, s.backend, r.GetTool(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateToolResponse{Tool: tool, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteTool implements the RPC.
func (s *catalogServer) DeleteTool(ctx context.Context, r *toolgrantv1.DeleteToolRequest) (*toolgrantv1.DeleteToolResponse, error) {
	revision, err := tools.delete(ctx, s.backend, r.GetToolId(), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteToolResponse{Revision: revision}, err
}

// CreateMcpServer implements the RPC.
func (s *catalogServer) CreateMcpServer(ctx context.Context, r *toolgrantv1.CreateMcpServerRequest) (*toolgrantv1.CreateMcpServerResponse, error) {
	server, w, err := mcpServers.create(ctx, s.backend, r.GetMcpServer())
	return &toolgrantv1.CreateMcpServerResponse{McpServer: server, Revision: w.revision, Warnings: w.warnings}, err
}

// GetMcpServer implements the RPC.
func (s *catalogServer) GetMcpServer(ctx context.Context, r *toolgrantv1.GetMcpServerRequest) (*toolgrantv1.GetMcpServerResponse, error) {
	server, revision, err := mcpServers.get(ctx, s.backend, r.GetMcpServerId(), r.GetConsistency())
	return &toolgrantv1.GetMcpServerResponse{McpServer: server, Revision: revision}, err
}

// ListMcpServers implements the RPC.
func (s *catalogServer) ListMcpServers(ctx context.Context, r *toolgrantv1.ListMcpServersRequest) (*toolgrantv1.ListMcpServersResponse, error) {
	list, at, err := mcpServers.list(ctx, s.backend, r)
	return &toolgrantv1.ListMcpServersResponse{McpServers: list, NextPageToken: at.next, Revision: at.revision}, err
}

// UpdateMcpServer implements the RPC.
func (s *catalogServer) UpdateMcpServer(ctx context.Context, r *toolgrantv1.UpdateMcpServerRequest) (*toolgrantv1.UpdateMcpServerResponse, error) {
	server, w, err := mcpServers.update(ctx, s.backend, r.GetMcpServer(), r.GetUpdateMask(), r.GetAllowMissing())
	return &toolgrantv1.UpdateMcpServerResponse{McpServer: server, Revision: w.revision, Warnings: w.warnings}, err
}

// DeleteMcpServer implements the RPC.
func (s *catalogServer) DeleteMcpServer(ctx context.Context, r *toolgrantv1.DeleteMcpServerRequest) (*toolgrantv1.DeleteMcpServerResponse, error) {
	revision, err := mcpServers.delete(ctx, s.backend, r.GetMcpServerId(), r.GetEtag(), r.GetAllowMissing())
	return &toolgrantv1.DeleteMcpServerResponse{Revision: revision}, err
}
