package main

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const (
	mcpPrefix   = "bench-mcp"
	mcpFunction = "echo_0"
	mcpGiven    = 40 // functions of a tool
)

// mcpFunctions are those of one tool type.
func mcpFunctions(number int) []*toolgrantv1.McpFunction {
	schema := &structpb.Struct{Fields: map[string]*structpb.Value{
		"type": structpb.NewStringValue("object"),
		"properties": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"text": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
				"type": structpb.NewStringValue("string"), "description": structpb.NewStringValue("What is to be said again, word for word.")}})}})}}
	functions := make([]*toolgrantv1.McpFunction, mcpGiven)
	for i := range functions {
		functions[i] = &toolgrantv1.McpFunction{Name: "echo_" + strconv.Itoa(i), InputSchema: schema, Risk: toolgrantv1.ToolRisk_TOOL_RISK_LOW,
			Description: fmt.Sprintf("Says again what it is told, in the way of number %d of set %d. Nothing is kept, and nobody else hears it.", i, number)}
	}
	return functions
}

// writeMCPWorld writes the server, so many functions, a tool of forty each, and a user who is given the first tool. Only
// that one names the server that there is: Toolgrant would ask it for each tool type.
func writeMCPWorld(ctx context.Context, conn *grpc.ClientConn, endpoint string, functions int) error {
	m := &toolgrantv1.Manifest{
		McpServers: []*toolgrantv1.McpServer{{McpServerId: mcpPrefix, Endpoint: endpoint}, {McpServerId: mcpPrefix + "-away", Endpoint: "http://127.0.0.1:9"}},
		Groups:     []*toolgrantv1.Group{{GroupId: mcpPrefix, GrantToolIds: []string{mcpPrefix}}},
		Avatars:    []*toolgrantv1.Avatar{{AvatarId: mcpPrefix, ToolIds: []string{mcpPrefix}}},
		Users:      []*toolgrantv1.User{{UserId: mcpPrefix, Memberships: []*toolgrantv1.Membership{{GroupId: mcpPrefix}}}},

		DefaultAvatars: []*toolgrantv1.DefaultAvatar{{AvatarId: mcpPrefix, UserId: mcpPrefix}},
	}
	const batch = 20
	for i := range functions / mcpGiven {
		name, server := mcpPrefix, mcpPrefix
		if i > 0 {
			name, server = fmt.Sprintf("%s-%d", mcpPrefix, i), mcpPrefix+"-away"
		}
		m.ToolTypes = append(m.ToolTypes, &toolgrantv1.ToolType{ToolTypeId: name, Source: toolgrantv1.ToolSource_TOOL_SOURCE_EXTERNAL_MCP, McpServerId: server,
			Functions: mcpFunctions(i)})
		m.Tools = append(m.Tools, &toolgrantv1.Tool{ToolId: name, ToolTypeId: name, Name: name})
		if len(m.Tools) == batch {
			if err := apply(ctx, conn, m); err != nil {
				return err
			}
			m = &toolgrantv1.Manifest{}
		}
	}
	return apply(ctx, conn, m)
}
