package grpcserver_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// nested is a document of so many levels of objects.
func nested(levels int) *structpb.Struct {
	document := &structpb.Struct{}
	for range levels - 1 {
		document = &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStructValue(document)}}
	}
	return document
}

func TestDocumentsNestOnlySoDeep(t *testing.T) {
	ctx, c := setup(t)
	create := func(config *structpb.Struct) error {
		_, err := c.CreateTool(ctx, &v1.CreateToolRequest{Tool: &v1.Tool{ToolId: "x", ToolTypeId: "clock", Name: "x", Config: config}})
		return err
	}
	list := structpb.NewListValue(&structpb.ListValue{})
	for range 99 {
		list = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{list}})
	}
	for _, config := range []*structpb.Struct{nested(101), nested(1_000), nested(10_000), {Fields: map[string]*structpb.Value{"a": list}}} {
		expect(t, create(config), codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool.config")
	}
	_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: &v1.Manifest{ToolTypes: []*v1.ToolType{
		{ToolTypeId: "a", Source: v1.ToolSource_TOOL_SOURCE_NATIVE},
		{ToolTypeId: "b", Source: v1.ToolSource_TOOL_SOURCE_NATIVE, ConfigSchema: nested(200), InputSchema: nested(100)}}}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool_types[1].config_schema")
	if err := create(nested(100)); err != nil {
		t.Error(err)
	}
}

func TestADocumentNestedAMillionDeepHurtsNobody(t *testing.T) {
	ctx, c := setup(t)
	// From the inside out: each message has nothing but the one in it, so that only headers are needed.
	var headers [][]byte
	size := 0
	wrap := func(number protowire.Number) {
		header := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(size))
		headers, size = append(headers, header), size+len(header)
	}
	for range 1_000_000 {
		wrap(1) // ListValue.values
		wrap(6) // Value.list_value
	}
	for _, number := range []protowire.Number{2, 1, 8, 1} { // an entry's value, Struct.fields, Tool.config, CreateToolRequest.tool
		wrap(number)
	}
	slices.Reverse(headers)
	raw := grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2(encodingproto.Name)})
	err := c.conn.Invoke(ctx, v1.CatalogService_CreateTool_FullMethodName, slices.Concat(headers...), &v1.CreateToolResponse{}, raw)
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool.config")
	if _, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "now"}); err != nil {
		t.Errorf("it no longer answers others: %v", err)
	}
}

func TestASchemaThatRefersToItself(t *testing.T) {
	ctx, c := setup(t)
	apply := func(schema, config map[string]any) error {
		_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: &v1.Manifest{
			ToolTypes: []*v1.ToolType{{ToolTypeId: "x", Source: v1.ToolSource_TOOL_SOURCE_NATIVE, ConfigSchema: fields(t, schema)}},
			Tools:     []*v1.Tool{{ToolId: "x", ToolTypeId: "x", Name: "x", Config: fields(t, config)}}}})
		return err
	}
	ref := func(to string) map[string]any { return map[string]any{"$ref": to} }
	none := map[string]any{}
	for name, schema := range map[string]map[string]any{
		"at once":         ref("#"),
		"over two others": {"$ref": "#/$defs/a", "$defs": map[string]any{"a": ref("#/$defs/b"), "b": ref("#/$defs/a")}},
		"in a list":       {"allOf": []any{ref("#")}},
		"dynamically":     {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, apply(schema, none), codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool_types[0].config_schema", "tools[0].config")
		})
	}
	tree := map[string]any{"properties": map[string]any{"child": ref("#")}, "additionalProperties": false}
	if err := apply(tree, map[string]any{"child": map[string]any{"child": none}}); err != nil {
		t.Error(err)
	}
	expect(t, apply(tree, map[string]any{"child": map[string]any{"child": map[string]any{"cat": none}}}), codes.InvalidArgument,
		"ERROR_REASON_INVALID_REQUEST", "tools[0].config.child.child")
	// A cycle behind a condition is found when a config gets there.
	hidden := map[string]any{"if": map[string]any{"required": []any{"a"}}, "then": ref("#")}
	if err := apply(hidden, none); err != nil {
		t.Error(err)
	}
	expect(t, apply(hidden, map[string]any{"a": 1}), codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tools[0].config")
}
