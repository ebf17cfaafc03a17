package grpcserver_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	proven "github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

var update = flag.Bool("update", false, "write docs/access.md anew")

// rpc is a method of a running server.
type rpc struct {
	protoreflect.MethodDescriptor
	path string
}

// rpcs are all methods that a server has, found as reflection tells them.
func rpcs(t *testing.T, server *grpc.Server) []rpc {
	t.Helper()
	var all []rpc
	for service := range server.GetServiceInfo() {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			t.Fatal(err)
		}
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			all = append(all, rpc{methods.Get(i), "/" + service + "/" + string(methods.Get(i).Name())})
		}
	}
	slices.SortFunc(all, func(a, b rpc) int { return strings.Compare(a.path, b.path) })
	if len(all) < 80 {
		t.Fatalf("only %d RPCs were found", len(all))
	}
	return all
}

// declared is what the RPC's proto says of who may call it; nil: nothing.
func (r rpc) declared() *v1.Access {
	options := r.Options().(*descriptorpb.MethodOptions)
	if !proto.HasExtension(options, v1.E_Access) {
		return nil
	}
	return proto.GetExtension(options, v1.E_Access).(*v1.Access)
}

func (r rpc) allows(role proven.Role, mcp bool) bool {
	name := v1.Role(v1.Role_value["ROLE_"+string(role)])
	a := r.declared()
	return role == proven.Admin || slices.Contains(a.GetRoles(), name) || mcp && slices.Contains(a.GetMcpRoles(), name)
}

// call calls the RPC and returns its first answer, and what it failed with. A stream is ended then.
func (r rpc) call(ctx context.Context, conn *grpc.ClientConn, request proto.Message) (proto.Message, error) {
	response := dynamicpb.NewMessage(r.Output())
	if !r.IsStreamingServer() {
		return response, conn.Invoke(ctx, r.path, request, response)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: r.IsStreamingClient()}, r.path)
	if err != nil {
		return response, err
	}
	if err := stream.SendMsg(request); err != nil {
		return response, err
	}
	if err := stream.CloseSend(); err != nil {
		return response, err
	}
	return response, stream.RecvMsg(response)
}

// reasonOf is the ErrorReason of an error, without its prefix.
func reasonOf(err error) fault.Reason {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return fault.Reason(strings.TrimPrefix(info.GetReason(), "ERROR_REASON_"))
		}
	}
	return ""
}

// proving lets callers be whom their metadata says, and nobody else.
func proving(ctx context.Context) (*proven.Identity, error) {
	of := func(key string) string { return strings.Join(metadata.ValueFromIncomingContext(ctx, key), "") }
	if of("test-role") == "" {
		return nil, &fault.Fault{Kind: fault.Unauthenticated, Reason: fault.ReasonUnauthenticated, Message: "no credentials"}
	}
	return &proven.Identity{Actor: "test:" + of("test-role"), Role: proven.Role(of("test-role")), User: id.User(of("test-user")), MCP: of("test-mcp") != ""}, nil
}

func inRole(ctx context.Context, role proven.Role, user string, mcp bool) context.Context {
	ctx = metadata.AppendToOutgoingContext(ctx, "test-role", string(role), "test-user", user)
	if mcp {
		ctx = metadata.AppendToOutgoingContext(ctx, "test-mcp", "yes")
	}
	return ctx
}

// TestEveryRPCSaysWhoMayCallIt fails for an RPC without a declaration, and for one whose declaration opens more than its
// request can be checked for.
func TestEveryRPCSaysWhoMayCallIt(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{})
	for _, r := range rpcs(t, n.Server) {
		if !strings.HasPrefix(r.path, "/toolgrant.v1.") {
			continue
		}
		a := r.declared()
		if len(a.GetRoles()) == 0 {
			t.Errorf("%s does not say who may call it: give it option (access).roles, see proto/toolgrant/v1/access.proto", r.path)
			continue
		}
		for _, role := range append(slices.Clone(a.GetRoles()), a.GetMcpRoles()...) {
			if role == v1.Role_ROLE_UNSPECIFIED {
				t.Errorf("%s: a role is unspecified", r.path)
			}
		}
		frontend := slices.Contains(a.GetRoles(), v1.Role_ROLE_FRONTEND)
		field := map[v1.Own]protoreflect.Name{v1.Own_OWN_USER: "user_id", v1.Own_OWN_CHAT: "chat_id", v1.Own_OWN_APPROVAL: "approval_id"}[a.GetOwn()]
		if f := r.Input().Fields().ByName(field); field != "" && (f == nil || f.Kind() != protoreflect.StringKind) {
			t.Errorf("%s: (access).own is %v, but its request has no %s", r.path, a.GetOwn(), field)
		}
		if frontend && field == "" {
			t.Errorf("%s: a frontend may call it, but (access).own does not say what must be its user's", r.path)
		}
		if r.Input().Fields().ByName("user_id") != nil && frontend && a.GetOwn() != v1.Own_OWN_USER {
			t.Errorf("%s: its request has a user_id, so (access).own must be OWN_USER", r.path)
		}
		safe := r.Options().(*descriptorpb.MethodOptions).GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
		if slices.Contains(a.GetRoles(), v1.Role_ROLE_VIEWER) && !safe && r.Input().Fields().ByName("turn") == nil {
			t.Errorf("%s: a viewer may call it, but it is not without side effects", r.path)
		}
	}
}

func TestEveryRoleReachesWhatIsDeclaredAndNothingElse(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{Authenticate: proving})
	ctx := testkit.Context(t)
	for _, r := range rpcs(t, n.Server) {
		empty := dynamicpb.NewMessage(r.Input())
		if _, err := r.call(ctx, n.Conn, empty); status.Code(err) != codes.Unauthenticated || reasonOf(err) != fault.ReasonUnauthenticated {
			t.Errorf("%s without credentials: %v", r.path, err)
		}
		for _, role := range proven.Roles {
			for _, mcp := range []bool{false, true} {
				_, err := r.call(inRole(ctx, role, "ann", mcp), n.Conn, empty)
				refused := reasonOf(err) == fault.ReasonRoleNotAllowed && status.Code(err) == codes.PermissionDenied
				if refused == r.allows(role, mcp) || status.Code(err) == codes.Unauthenticated || status.Code(err) == codes.Unimplemented {
					t.Errorf("%s as %s (for MCP: %t): %v", r.path, role, mcp, err)
				}
			}
		}
	}
}

// TestWhoMayCallWhatIsDocumented holds the declarations against the page that people review them on.
func TestWhoMayCallWhatIsDocumented(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{})
	var page strings.Builder
	page.WriteString(accessPage)
	service := ""
	for _, r := range rpcs(t, n.Server) {
		a := r.declared()
		if a == nil {
			continue
		}
		if of := string(r.Parent().Name()); of != service {
			service = of
			fmt.Fprintf(&page, "\n## %s\n\n| RPC | operator | chat server | frontend | viewer |\n|---|---|---|---|---|\n", service)
		}
		fmt.Fprintf(&page, "| `%s` |", r.Name())
		for _, role := range []proven.Role{proven.Operator, proven.ChatServer, proven.Frontend, proven.Viewer} {
			switch {
			case !r.allows(role, true):
				page.WriteString(" |")
			case !r.allows(role, false):
				page.WriteString(" over MCP |")
			case role == proven.Frontend:
				fmt.Fprintf(&page, " %s |", map[v1.Own]string{v1.Own_OWN_USER: "own `user_id`", v1.Own_OWN_CHAT: "own `chat_id`", v1.Own_OWN_APPROVAL: "own `approval_id`"}[a.GetOwn()])
			default:
				page.WriteString(" yes |")
			}
		}
		page.WriteString("\n")
	}
	const path = "../../docs/access.md"
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != page.String() {
		t.Errorf("%s is not what the protos declare; look at the difference after: go test ./internal/grpcserver -run TestWhoMayCallWhatIsDocumented -update", path)
	}
}

const accessPage = `# Who may call what

Made from the protos, which declare it with ` + "`option (access)`" + ` ([access.proto](../proto/toolgrant/v1/access.proto)), by ` +
	"`go test ./internal/grpcserver -run TestWhoMayCallWhatIsDocumented -update`" + `. The role ` + "`admin`" + ` may call everything.

A **frontend** has one user's credentials and reaches that user's data only. "own" names what of its request is held against
its user; a chat or a device that a request names besides is refused by the RPC if it is another user's. "over MCP": the
server's own [MCP endpoint](mcp.md) calls it on behalf of such a client, which may not call it itself. A **viewer** may
not pass ` + "`turn`" + `, since that may be stored.
`
