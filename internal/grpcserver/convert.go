package grpcserver

import (
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// jsonFromStruct converts a Struct that was checked: it holds no NaN, which JSON lacks.
func jsonFromStruct(s *structpb.Struct) json.RawMessage {
	if s == nil {
		return nil
	}
	data, err := json.Marshal(s.AsMap()) // its keys are sorted
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}

func structFromJSON(data json.RawMessage) (*structpb.Struct, error) {
	if data == nil {
		return nil, nil
	}
	s := &structpb.Struct{}
	return s, s.UnmarshalJSON(data)
}

func timeFromProto(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime().Truncate(time.Microsecond)
}

func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func ids[T ~string](list []string) []T {
	converted := make([]T, len(list))
	for i, s := range list {
		converted[i] = T(s)
	}
	return converted
}

// strings turns ids into plain strings.
func strings[T ~string](ids []T) []string { return appendStrings(nil, ids) }

func appendStrings[T ~string](list []string, ids []T) []string {
	list = slices.Grow(list, len(ids))
	for _, name := range ids {
		list = append(list, string(name))
	}
	return list
}
