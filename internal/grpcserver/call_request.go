package grpcserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// maxArgumentsMessage bounds what is looked at of arguments: whatever is larger as a message is larger than
// call.MaxArgumentBytes as JSON, or has more values than call.MaxArgumentValues.
const maxArgumentsMessage = 2 << 20

// callQuestion is a request, and what tells it from others of the same call_id.
type callQuestion struct {
	call.Request
	content string
	lease   time.Duration
}

func callQuestionFromProto(r *toolgrantv1.AuthorizeCallRequest) (*callQuestion, error) {
	q := &callQuestion{lease: defaultLease, Request: call.Request{Call: id.Call(r.GetCallId()), Chat: id.Chat(r.GetChatId()), Turn: r.Turn,
		Function: r.GetFunction(), Source: r.GetSource(), Provider: r.GetProvider(),
		ModelCapabilities: r.GetModelCapabilities(), ProviderCapabilities: r.GetProviderCapabilities()}}
	if r.GetLease() != nil {
		q.lease = r.GetLease().AsDuration().Truncate(time.Millisecond)
	}
	if r.GetArguments() != nil {
		if faults := argumentFaults(r.GetArguments()); len(faults) > 0 {
			return nil, fault.Invalid(faults...)
		}
		q.Arguments = r.GetArguments().AsMap()
	}
	var err error
	q.content, err = callContent(r, q)
	return q, err
}

// scratch is where contents are written to be hashed.
var callScratch = sync.Pool{New: func() any { return new([]byte) }}

// callContent is a fingerprint of what a call is. The turn, and what the model can do, may differ when it is asked for
// again.
func callContent(r *toolgrantv1.AuthorizeCallRequest, q *callQuestion) (string, error) {
	scratch := callScratch.Get().(*[]byte)
	defer callScratch.Put(scratch)
	text := (*scratch)[:0]
	for _, part := range [...]string{r.GetChatId(), r.GetUserId(), r.GetSurface().GetDeviceId(), r.GetFunction(), r.GetSource()} {
		text = append(strconv.AppendInt(text, int64(len(part)), 10), ':')
		text = append(text, part...)
	}
	text = strconv.AppendInt(text, r.GetEstimatedTokens(), 10)
	text = strconv.AppendInt(append(text, ' '), q.lease.Milliseconds(), 10)
	if q.Arguments != nil {
		arguments, err := json.Marshal(q.Arguments) // its keys are sorted
		if err != nil {
			return "", err
		}
		text = append(append(text, ' '), arguments...)
	}
	*scratch = text
	if cap(text) > 64<<10 {
		*scratch = nil
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12]), nil
}

// argumentFaults returns what in arguments is not JSON at all. What is too much of it, the function's rules tell.
func argumentFaults(s *structpb.Struct) []fault.Violation {
	if proto.Size(s) > maxArgumentsMessage {
		return []fault.Violation{{Field: "arguments", Description: "must be at most 1 MiB as JSON"}}
	}
	if structDeeper(s, call.MaxArgumentDepth) {
		return []fault.Violation{{Field: "arguments", Description: tooDeep}}
	}
	var faults []fault.Violation
	var check func(v *structpb.Value, path string)
	object := func(s *structpb.Struct, path string) {
		for name, v := range s.GetFields() {
			if !utf8.ValidString(name) {
				faults = append(faults, fault.Violation{Field: path, Description: "names must be UTF-8"})
				continue
			}
			check(v, path+"."+name)
		}
	}
	check = func(v *structpb.Value, path string) {
		if len(faults) > 0 {
			return
		}
		switch kind := v.GetKind().(type) {
		case nil:
			faults = append(faults, fault.Violation{Field: path, Description: "has no value"})
		case *structpb.Value_NumberValue:
			if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
				faults = append(faults, fault.Violation{Field: path, Description: "must be a finite number"})
			}
		case *structpb.Value_StringValue:
			if !utf8.ValidString(kind.StringValue) {
				faults = append(faults, fault.Violation{Field: path, Description: "must be UTF-8"})
			}
		case *structpb.Value_StructValue:
			object(kind.StructValue, path)
		case *structpb.Value_ListValue:
			for i, item := range kind.ListValue.GetValues() {
				check(item, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	object(s, "arguments")
	return faults
}

// plainCall tells of a question about a call what plain does; of its arguments, argumentFaults tells.
func plainCall(r *toolgrantv1.AuthorizeCallRequest) bool {
	return id.Valid(r.GetCallId()) && id.Valid(r.GetChatId()) && id.Valid(r.GetUserId()) && plainSurface(r.GetSurface()) && r.GetTurn() >= 0 &&
		r.GetFunction() != "" && len(r.GetFunction()) <= 256 && utf8.ValidString(r.GetFunction()) &&
		len(r.GetSource()) <= 128 && utf8.ValidString(r.GetSource()) && within(r.GetEstimatedTokens(), 0, 1_000_000_000) &&
		len(r.GetModelCapabilities())+len(r.GetProviderCapabilities())+len(r.GetProvider()) == 0 && r.Lease == nil
}

func plainReport(r *toolgrantv1.ReportCallRequest) bool {
	_, known := toolgrantv1.CallOutcome_name[int32(r.GetOutcome())]
	return id.Valid(r.GetCallId()) && known && r.GetOutcome() != toolgrantv1.CallOutcome_CALL_OUTCOME_UNSPECIFIED && within(r.GetTokens(), 0, 1_000_000_000) &&
		(r.Latency == nil || r.GetLatency().IsValid() && r.GetLatency().AsDuration() >= 0)
}

// withoutArguments is a message as the rules of the protos look at it: argumentFaults knows those of arguments.
func withoutArguments(m proto.Message) proto.Message {
	r, ok := m.(*toolgrantv1.AuthorizeCallRequest)
	if !ok || r.GetArguments() == nil {
		return m
	}
	arguments := r.Arguments
	r.Arguments = nil
	rest := proto.CloneOf(r)
	r.Arguments = arguments
	return rest
}
