package grpcserver

import (
	"fmt"
	"strconv"
	gostrings "strings"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/toolgrant/toolgrant/internal/fault"
)

// codec is the proto codec, but for messages that are encoded already, and for requests with invalid UTF-8 in
// a string or documents nested beyond reason. gRPC would answer those with INTERNAL, before any of our code is
// asked. Here such a request is let through empty, with its bytes as unknown fields, for undecodable to say
// what is wrong with it.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(encodingproto.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(encoded); ok {
		return mem.BufferSlice(e), nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	m, ok := v.(proto.Message)
	if err == nil || !ok {
		return err
	}
	content := data.Materialize()
	if len(stringFaults(m.ProtoReflect().Descriptor(), content)) == 0 {
		return err
	}
	proto.Reset(m)
	m.ProtoReflect().SetUnknown(content)
	return nil
}

// undecodable returns the strings and documents of a request for which it could not be decoded.
func undecodable(m proto.Message) []fault.Violation {
	unknown := m.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	// Fields of newer clients are unknown too, but they have other numbers than those of the descriptor.
	return stringFaults(m.ProtoReflect().Descriptor(), unknown)
}

// maxWireDepth is deeper than any request nests whose documents nest as deep as they may: a level of a
// Struct takes up to three messages.
const maxWireDepth = 3*maxStructDepth + 20

// stringFaults walks an encoded message and returns its strings that are not UTF-8, and documents that nest
// too deep to go on. What cannot be walked has none.
func stringFaults(message protoreflect.MessageDescriptor, data []byte) []fault.Violation {
	var w wireWalk
	w.message(message, data)
	return w.faults
}

// wireWalk is a walk through an encoded message.
type wireWalk struct {
	path   []string // where it is
	faults []fault.Violation
}

func (w *wireWalk) message(message protoreflect.MessageDescriptor, data []byte) {
	counts := map[protowire.Number]int{}
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return
		}
		data = data[n:]
		field := message.Fields().ByNumber(number)
		if wire != protowire.BytesType || field == nil {
			if n = protowire.ConsumeFieldValue(number, wire, data); n < 0 {
				return
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return
		}
		data = data[n:]
		at := string(field.Name())
		switch {
		case field.IsMap():
			at += "[" + strconv.Quote(mapKey(value)) + "]"
		case field.IsList():
			at += fmt.Sprintf("[%d]", counts[number])
			counts[number]++
		}
		w.path = append(w.path, at)
		w.field(field, value)
		w.path = w.path[:len(w.path)-1]
	}
}

func (w *wireWalk) field(field protoreflect.FieldDescriptor, value []byte) {
	path := func() string { return gostrings.Join(w.path, ".") }
	switch {
	case field.Kind() == protoreflect.StringKind && !utf8.Valid(value):
		w.faults = append(w.faults, fault.Violation{Field: plainPath(path()), Description: "must be valid UTF-8"})
	case field.Kind() == protoreflect.MessageKind && len(w.path) == maxWireDepth:
		document, _, _ := gostrings.Cut(path(), ".fields[")
		w.faults = append(w.faults, fault.Violation{Field: document, Description: tooDeep})
	case field.Kind() == protoreflect.MessageKind:
		w.message(field.Message(), value)
	}
}

// mapKey returns the key of an encoded entry of a map whose keys are strings.
func mapKey(entry []byte) string {
	for len(entry) > 0 {
		number, wire, n := protowire.ConsumeTag(entry)
		if n < 0 {
			return ""
		}
		entry = entry[n:]
		if number == 1 && wire == protowire.BytesType {
			key, _ := protowire.ConsumeBytes(entry)
			return string(key)
		}
		if n = protowire.ConsumeFieldValue(number, wire, entry); n < 0 {
			return ""
		}
		entry = entry[n:]
	}
	return ""
}
