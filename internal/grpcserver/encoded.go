package grpcserver

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// encoded is a message as it goes on the wire, in parts: fields of a message may stand in any order, so parts
// that were encoded apart make one message together. Nobody changes the parts.
type encoded mem.BufferSlice

// entitlementDesc describes EntitlementService as the generated code does, but for ResolveTools, whose
// answers are encoded already.
func entitlementDesc() *grpc.ServiceDesc {
	desc := toolgrantv1.EntitlementService_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i := range desc.Methods {
		if desc.Methods[i].MethodName == "ResolveTools" {
			desc.Methods[i].Handler = resolveToolsHandler
		}
	}
	return &desc
}

func resolveToolsHandler(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	request := new(toolgrantv1.ResolveToolsRequest)
	if err := decode(request); err != nil {
		return nil, err
	}
	info := &grpc.UnaryServerInfo{Server: server, FullMethod: toolgrantv1.EntitlementService_ResolveTools_FullMethodName}
	return intercept(ctx, request, info, func(ctx context.Context, request any) (any, error) {
		return server.(*entitlementServer).resolveTools(ctx, request.(*toolgrantv1.ResolveToolsRequest))
	})
}

// Fields of ResolveToolsResponse and WatchToolsResponse, which number them alike.
var (
	revisionField   = numberOf(&toolgrantv1.WatchToolsResponse{}, "revision")
	staleField      = numberOf(&toolgrantv1.WatchToolsResponse{}, "stale")
	checkpointField = numberOf(&toolgrantv1.WatchToolsResponse{}, "checkpoint")
)

func numberOf(m proto.Message, field protoreflect.Name) protowire.Number {
	return m.ProtoReflect().Descriptor().Fields().ByName(field).Number()
}

func appendString(data []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(data, field, protowire.BytesType), text)
}

func appendTrue(data []byte, field protowire.Number) []byte {
	return protowire.AppendVarint(protowire.AppendTag(data, field, protowire.VarintType), protowire.EncodeBool(true))
}
