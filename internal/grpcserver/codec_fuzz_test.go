package grpcserver

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// Whatever bytes come as a request: they are decoded, refused, or let through empty for validation to tell what
// is wrong with them. Nothing else, and no panic.
func FuzzUnmarshal(f *testing.F) {
	valid, err := proto.Marshal(&toolgrantv1.ApplyManifestRequest{Manifest: &toolgrantv1.Manifest{Tools: []*toolgrantv1.Tool{{ToolId: "a",
		Localized: map[string]*toolgrantv1.LocalizedText{"zh": {Title: "甲"}}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte("\x0a\x05\x12\x03\x0a\x01\xff")) // manifest.tools[0].tool_id is no UTF-8
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []proto.Message{&toolgrantv1.ApplyManifestRequest{}, &toolgrantv1.ResolveToolsRequest{}, &toolgrantv1.SetChatToolsRequest{}} {
			got := m.ProtoReflect().New().Interface()
			ours := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, got)
			if theirs := proto.Unmarshal(data, m); theirs == nil {
				if ours != nil || !proto.Equal(got, m) {
					t.Errorf("%x: decoded as %v (%v), not %v", data, got, ours, m)
				}
			} else if ours == nil && len(undecodable(got)) == 0 {
				t.Errorf("%x: let through, and nothing is wrong with it: %v", data, theirs)
			}
		}
	})
}
