package grpcserver

import (
	"context"
	"fmt"
	gostrings "strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// Authenticate tells who calls, by what the context of the call holds. Its errors are faults.
type Authenticate func(context.Context) (*caller.Identity, error)

// rule is who may call an RPC, as its proto declares. No rule: nobody may.
type rule struct {
	roles    map[caller.Role]bool
	mcpRoles map[caller.Role]bool // for which this server's MCP endpoint may, besides roles
	own      toolgrantv1.Own
	open     bool // to whoever asks, without credentials
}

// rules are those of all RPCs, by their full names.
var rules = declaredRules(toolgrantv1.File_toolgrant_v1_access_proto.Package())

// declaredRules reads the rules of a package's services, and adds those of gRPC's own, whose protos declare none.
func declaredRules(of protoreflect.FullName) map[string]*rule {
	table := map[string]*rule{}
	protoregistry.GlobalFiles.RangeFilesByPackage(of, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				if r := declaredRule(method); r != nil {
					table["/"+string(service.FullName())+"/"+string(method.Name())] = r
				}
			}
		}
		return true
	})
	anybody := &rule{roles: roleSet(rolesOf...)}
	table["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] = anybody
	table["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] = anybody
	for _, name := range []string{"Check", "Watch", "List"} { // load balancers have no credentials
		table["/grpc.health.v1.Health/"+name] = &rule{open: true}
	}
	return table
}

// declaredRule is the rule that a method's proto declares; nil: none.
func declaredRule(method protoreflect.MethodDescriptor) *rule {
	options, ok := method.Options().(*descriptorpb.MethodOptions)
	if !ok || !proto.HasExtension(options, toolgrantv1.E_Access) {
		return nil
	}
	declared, ok := proto.GetExtension(options, toolgrantv1.E_Access).(*toolgrantv1.Access)
	if !ok || len(declared.GetRoles()) == 0 {
		return nil
	}
	r := &rule{roles: roleSet(declared.GetRoles()...), mcpRoles: roleSet(declared.GetMcpRoles()...), own: declared.GetOwn()}
	r.roles[caller.Admin] = true
	if r.roles[caller.Frontend] && r.own == toolgrantv1.Own_OWN_UNSPECIFIED {
		return nil // it would reach everybody's data
	}
	return r
}

// rolesOf are the proto's roles.
var rolesOf = func() (all []toolgrantv1.Role) {
	for _, r := range caller.Roles {
		all = append(all, roleToProto(r))
	}
	return all
}()

func roleToProto(r caller.Role) toolgrantv1.Role {
	return toolgrantv1.Role(toolgrantv1.Role_value[rolePrefix+string(r)])
}

func roleFromProto(r toolgrantv1.Role) caller.Role {
	if r == toolgrantv1.Role_ROLE_UNSPECIFIED {
		return ""
	}
	return caller.Role(gostrings.TrimPrefix(r.String(), rolePrefix))
}

const rolePrefix = "ROLE_"

func roleSet(roles ...toolgrantv1.Role) map[caller.Role]bool {
	set := map[caller.Role]bool{}
	for _, r := range roles {
		set[roleFromProto(r)] = true
	}
	return set
}

// access lets calls through that are allowed.
type access struct {
	authenticate Authenticate // nil: nobody is asked who it is, and everybody may call whatever is declared
	replica      *replica.Replica
	approvals    ApprovalStore
	open         openStreams
}

// errUndeclared is a fault of the server's: the proto of the RPC does not say who may call it.
func errUndeclared(method string) error {
	return &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonRoleNotAllowed, Message: "it is not declared who may call " + method}
}

// admit tells who calls, and what is to be checked of the request. The context is that of the handler.
func (a *access) admit(ctx context.Context, method string) (context.Context, *rule, *caller.Identity, error) {
	r := rules[method]
	if r == nil {
		return ctx, nil, nil, errUndeclared(method)
	}
	if a.authenticate == nil || r.open {
		return ctx, r, nil, nil
	}
	who, err := a.authenticate(ctx)
	if err != nil {
		return ctx, nil, nil, err
	}
	if allowed := r.roles[who.Role] || who.MCP && r.mcpRoles[who.Role]; !allowed {
		return ctx, nil, nil, &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonRoleNotAllowed,
			Message: fmt.Sprintf("%s has the role %s, which may not call %s", who.Actor, gostrings.ToLower(string(who.Role)), method)}
	}
	return caller.WithIdentity(ctx, who), r, who, nil
}

// unary is the interceptor of unary calls.
func (a *access) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	ctx, r, who, err := a.admit(ctx, info.FullMethod)
	if err == nil && who != nil {
		err = a.checkRequest(ctx, r, who, request)
	}
	if err != nil {
		return nil, err
	}
	return handle(ctx, request)
}
