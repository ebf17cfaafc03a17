package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// kind is a kind of object that can be got. The API names the RPCs of all kinds alike, so that a kind is data:
// the calls are put together from it.
type kind struct {
	name    string // plural
	short   []string
	service string
	noun    string   // in the RPCs' names
	id      []string // the fields of the request that name an object; the first of two is its owner
	columns []string // fields of the object, or of the request, that the table shows
	// anyID lets * stand for an empty part of the id.
	anyID bool
	// unlisted objects can only be got by id.
	unlisted bool
}

var kinds = []kind{
	{name: "tool-types", short: []string{"tt"}, service: "CatalogService", noun: "ToolType", id: []string{"tool_type_id"},
		columns: []string{"tool_type_id", "title", "source", "mcp_server_id", "disabled", "quotas"}},
	{name: "tools", short: []string{"t"}, service: "CatalogService", noun: "Tool", id: []string{"tool_id"},
		columns: []string{"tool_id", "tool_type_id", "name", "title", "status", "core", "risk", "owner_user_id", "quotas"}},
	{name: "mcp-servers", short: []string{"mcp"}, service: "CatalogService", noun: "McpServer", id: []string{"mcp_server_id"},
		columns: []string{"mcp_server_id", "title", "transport", "endpoint", "priority"}},
	{name: "device-types", short: []string{"dt"}, service: "AvailabilityService", noun: "DeviceType", id: []string{"device_type_id"},
		columns: []string{"device_type_id", "title", "capabilities", "tool_ids"}},
	{name: "groups", short: []string{"g"}, service: "AvailabilityService", noun: "Group", id: []string{"group_id"},
		columns: []string{"group_id", "title", "priority", "grant_tool_ids", "revoke_tool_ids"}},
	{name: "users", short: []string{"u"}, service: "AvailabilityService", noun: "User", id: []string{"user_id"},
		columns: []string{"user_id", "devices", "memberships"}},
	{name: "devices", short: []string{"d"}, service: "AvailabilityService", noun: "Device", id: []string{"user_id", "device_id"},
		columns: []string{"user_id", "device_id", "device_type_id"}},
	{name: "memberships", short: []string{"m"}, service: "AvailabilityService", noun: "Membership", id: []string{"user_id", "group_id"},
		columns: []string{"user_id", "group_id", "start_time", "expire_time"}},
	{name: "avatars", short: []string{"a"}, service: "AvatarService", noun: "Avatar", id: []string{"avatar_id"},
		columns: []string{"avatar_id", "title", "tool_ids"}},
	{name: "default-avatars", short: []string{"da"}, service: "AvatarService", noun: "DefaultAvatar", id: []string{"user_id", "device_type_id"}, anyID: true,
		columns: []string{"user_id", "device_type_id", "avatar_id"}},
	{name: "chats", short: []string{"c"}, service: "ChatService", noun: "Chat", id: []string{"chat_id"}, unlisted: true,
		columns: []string{"chat_id", "user_id", "turn", "active_avatar_ids", "entry_count", "create_time", "end_time"}},
}

// singular is the kind's name for one object.
func (k *kind) singular() string { return strings.TrimSuffix(k.name, "s") }

// kindNamed finds a kind by its plural, singular or short name, with dashes or underscores.
func kindNamed(name string) (*kind, error) {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	var names []string
	for i := range kinds {
		if k := &kinds[i]; name == k.name || name == k.singular() || slices.Contains(k.short, name) {
			return k, nil
		}
		names = append(names, kinds[i].name)
	}
	return nil, fmt.Errorf("no such kind %q: it is one of %s", name, strings.Join(names, ", "))
}

// ofUser tells whether the kind's objects are parts of a user, and are listed by user.
func (k *kind) ofUser() bool { return len(k.id) == 2 && !k.anyID }

// split cuts an object's id into the fields that name it: "USER,GROUP", since ids may hold slashes. With a
// user given, the id is the second part alone.
func (k *kind) split(user, id string) ([]string, error) {
	parts := []string{id}
	if len(k.id) == 2 {
		owner, rest, found := strings.Cut(id, ",")
		switch {
		case user != "":
			parts = []string{user, id}
		case found:
			parts = []string{owner, rest}
		default:
			return nil, fmt.Errorf("%q names no %s: give %s,%s", id, k.singular(), strings.ToUpper(k.id[0]), strings.ToUpper(k.id[1]))
		}
	}
	for i, part := range parts {
		if part == "*" && k.anyID {
			parts[i] = ""
		} else if part == "" {
			return nil, fmt.Errorf("%q names no %s: a part of it is empty", id, k.singular())
		}
	}
	return parts, nil
}

// part words a part of an object's id.
func (k *kind) part(text string) string {
	if text == "" && k.anyID {
		return "*"
	}
	return text
}

// get calls the kind's Get RPC.
func (k *kind) get(ctx context.Context, conn *grpc.ClientConn, id []string) (request, response proto.Message, err error) {
	request, response, invoke, err := k.method(conn, "Get"+k.noun)
	if err != nil {
		return nil, nil, err
	}
	for i, field := range k.id {
		setField(request, field, protoreflect.ValueOfString(id[i]))
	}
	return request, response, invoke(ctx)
}

// pageSize is the largest that the API allows.
const pageSize = 1000

// list calls the kind's List RPC until there is nothing more, or as much as asked for; 0: all. The pages are
// joined into one response.
func (k *kind) list(ctx context.Context, conn *grpc.ClientConn, user string, limit int) (request, joined proto.Message, err error) {
	for {
		var page proto.Message
		var invoke func(context.Context) error
		request, page, invoke, err = k.method(conn, "List"+k.noun+"s")
		if err != nil {
			return nil, nil, err
		}
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(k.objects(joined)))
		}
		setField(request, "page_size", protoreflect.ValueOfInt32(int32(size)))
		if joined != nil {
			setField(request, "page_token", getField(joined, "next_page_token"))
		}
		if k.ofUser() {
			setField(request, "user_id", protoreflect.ValueOfString(user))
		}
		if err := invoke(ctx); err != nil {
			return nil, nil, err
		}
		next := getField(page, "next_page_token")
		if joined == nil {
			joined = page
		} else {
			setField(page, "revision", getField(joined, "revision")) // all pages are complete through the first one's
			proto.Merge(joined, page)
			setField(joined, "next_page_token", next)
		}
		if next.String() == "" || (limit > 0 && len(k.objects(joined)) >= limit) {
			return request, joined, nil
		}
	}
}

// objects returns what a response of the kind's RPCs holds: its first field is an object, or a list of them.
func (k *kind) objects(response proto.Message) []protoreflect.Message {
	if response == nil {
		return nil
	}
	message := response.ProtoReflect()
	field := message.Descriptor().Fields().ByNumber(1)
	if !field.IsList() {
		return []protoreflect.Message{message.Get(field).Message()}
	}
	var objects []protoreflect.Message
	for i, list := 0, message.Get(field).List(); i < list.Len(); i++ {
		objects = append(objects, list.Get(i).Message())
	}
	return objects
}

// method returns the messages of an RPC, and what calls it with them.
func (k *kind) method(conn *grpc.ClientConn, method string) (request, response proto.Message, invoke func(context.Context) error, err error) {
	const api = "toolgrant.v1."
	in, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(api + method + "Request"))
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(api + method + "Response"))
	if err != nil {
		return nil, nil, nil, err
	}
	request, response = in.New().Interface(), out.New().Interface()
	return request, response, func(ctx context.Context) error {
		return conn.Invoke(ctx, "/"+api+k.service+"/"+method, request, response)
	}, nil
}

func setField(message proto.Message, name string, value protoreflect.Value) {
	m := message.ProtoReflect()
	m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(name)), value)
}

func getField(message proto.Message, name string) protoreflect.Value {
	m := message.ProtoReflect()
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
}
