package grpcserver

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	gostrings "strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/toolgrant/toolgrant/internal/fault"
)

// maxStructBytes bounds a configuration or schema, as JSON.
const maxStructBytes = 64 << 10

// maxStructDepth bounds how deep a configuration or schema nests. Decoders, encoders and validators recurse.
const maxStructDepth = 100

var tooDeep = fmt.Sprintf("must nest objects and lists at most %d deep", maxStructDepth)

// structFaults returns what in a message's Structs cannot be kept as JSON in PostgreSQL, which protovalidate
// has no rules for: the character U+0000, numbers that are not finite, too much of it, nested too deep.
func structFaults(m proto.Message) (faults []fault.Violation) {
	report := func(path protopath.Path, description string) {
		faults = append(faults, fault.Violation{Field: plainPath(path[1:].String()[1:]), Description: description})
	}
	_ = protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		last := p.Index(-1)
		message, ok := last.Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		switch v := message.Interface().(type) {
		case *structpb.Struct:
			switch nested := p.Len() > 1 && isValue(p.Index(-2).Value); {
			case nested:
			case structDeeper(v, maxStructDepth):
				report(p.Path, tooDeep)
				return protorange.Break
			case len(jsonFromStruct(v)) > maxStructBytes:
				report(p.Path, "must be at most 64 KiB")
			}
		case *structpb.Value:
			switch kind := v.GetKind().(type) {
			case *structpb.Value_NumberValue:
				if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
					report(p.Path, "must be a finite number")
				}
			case *structpb.Value_StringValue:
				if gostrings.ContainsRune(kind.StringValue, 0) {
					report(p.Path, "must not contain the character U+0000")
				}
			}
			if key := last.Step; key.Kind() == protopath.MapIndexStep && gostrings.ContainsRune(key.MapIndex().String(), 0) {
				report(p.Path, "its name must not contain the character U+0000")
			}
		}
		return nil
	})
	return faults
}

// structDeeper tells whether a document has more levels of objects and lists than so many.
func structDeeper(s *structpb.Struct, levels int) bool {
	if levels == 0 {
		return true
	}
	for _, v := range s.GetFields() {
		if valueDeeper(v, levels-1) {
			return true
		}
	}
	return false
}

func valueDeeper(v *structpb.Value, levels int) bool {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return structDeeper(kind.StructValue, levels)
	case *structpb.Value_ListValue:
		return levels == 0 || slices.ContainsFunc(kind.ListValue.GetValues(), func(v *structpb.Value) bool { return valueDeeper(v, levels-1) })
	}
	return false
}

func isValue(v protoreflect.Value) bool {
	m, ok := v.Interface().(protoreflect.Message)
	if !ok {
		return false
	}
	_, ok = m.Interface().(*structpb.Value)
	return ok
}

var structSteps = regexp.MustCompile(`\.fields\["((?:[^"\\]|\\.)*)"\]|\.list_value\.values|\.(?:string|number|struct|bool|null|list)_value\b|\.value\b`)

// plainPath writes a path through a Struct as people write one through JSON.
func plainPath(path string) string {
	return structSteps.ReplaceAllStringFunc(path, func(step string) string {
		if name, ok := gostrings.CutPrefix(step, `.fields["`); ok {
			return "." + gostrings.TrimSuffix(name, `"]`)
		}
		return ""
	})
}
