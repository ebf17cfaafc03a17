package grpcserver

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/toolgrant/toolgrant/internal/fault"
)

// overlay takes fields of from over into to, as AIP-134 says: those that the mask names, each as a whole;
// all for "*"; those that are populated for no mask.
func overlay(to, from proto.Message, mask *fieldmaskpb.FieldMask) error {
	source, target := from.ProtoReflect(), to.ProtoReflect()
	if paths := mask.GetPaths(); len(paths) == 1 && paths[0] == "*" {
		proto.Reset(to)
		proto.Merge(to, from)
		return nil
	}
	if len(mask.GetPaths()) == 0 {
		source.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			target.Set(field, value)
			return true
		})
		return nil
	}
	for i, path := range mask.GetPaths() {
		field := source.Descriptor().Fields().ByName(protoreflect.Name(path))
		switch {
		case field == nil:
			return fault.Invalid(fault.Violation{Field: fmt.Sprintf("update_mask.paths[%d]", i),
				Description: fmt.Sprintf("%q is not a field of %s", path, source.Descriptor().Name())})
		case source.Has(field):
			target.Set(field, source.Get(field))
		default:
			target.Clear(field)
		}
	}
	return nil
}
