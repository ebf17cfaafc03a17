package grpcserver

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/fault"
)

var codeOf = map[fault.Kind]codes.Code{
	fault.Internal:           codes.Internal,
	fault.InvalidArgument:    codes.InvalidArgument,
	fault.NotFound:           codes.NotFound,
	fault.AlreadyExists:      codes.AlreadyExists,
	fault.PermissionDenied:   codes.PermissionDenied,
	fault.FailedPrecondition: codes.FailedPrecondition,
	fault.OutOfRange:         codes.OutOfRange,
	fault.Aborted:            codes.Aborted,
	fault.ResourceExhausted:  codes.ResourceExhausted,
	fault.Unavailable:        codes.Unavailable,
	fault.Unauthenticated:    codes.Unauthenticated,
}

// translateErrors is the one place where errors become statuses. What is not a fault is logged, and told to
// nobody; a panic is a fault of the server.
func translateErrors(logger *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (response any, err error) {
		defer func() {
			if p := recover(); p != nil {
				logger.ErrorContext(ctx, "panic", "method", info.FullMethod, "request_id", requestID(ctx), "panic", p, "stack", string(debug.Stack()))
				response, err = nil, statusOf(&fault.Fault{Reason: fault.ReasonInternal, Message: "internal error"})
			}
		}()
		response, err = handle(ctx, request)
		if err == nil {
			return response, nil
		}
		return nil, toStatus(ctx, logger, info.FullMethod, err)
	}
}

func toStatus(ctx context.Context, logger *slog.Logger, method string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return status.FromContextError(ended).Err()
	}
	f, ok := fault.As(err)
	if _, own := status.FromError(err); !ok && own { // gRPC's own word: nobody is there to send to, or health's answer
		return err
	}
	name := requestID(ctx)
	if !ok {
		logger.ErrorContext(ctx, "internal error", "method", method, "request_id", name, "error", err)
		f = &fault.Fault{Reason: fault.ReasonInternal, Message: "internal error"}
	} else if f.Cause != nil {
		logger.WarnContext(ctx, f.Message, "method", method, "request_id", name, "error", f.Cause)
	}
	tellRetryAfter(ctx, f.RetryAfter)
	return statusOf(f)
}

func statusOf(f *fault.Fault) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "toolgrant", Reason: "ERROR_REASON_" + string(f.Reason)}}
	if len(f.Violations) > 0 {
		bad := &errdetails.BadRequest{}
		for _, v := range f.Violations {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Description})
		}
		details = append(details, bad)
	}
	if f.Resource != "" {
		details = append(details, &errdetails.ResourceInfo{ResourceType: f.Resource, ResourceName: f.ID, Description: f.Message})
	}
	if len(f.Denials) > 0 {
		details = append(details, quotaFailure(f.Denials))
	}
	if f.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.RetryAfter)})
	}
	st, err := status.New(codeOf[f.Kind], f.Error()).WithDetails(details...)
	if err != nil {
		return status.Error(codeOf[f.Kind], f.Message)
	}
	return st.Err()
}

func quotaFailure(denials []fault.Denial) *errdetails.QuotaFailure {
	failure := &errdetails.QuotaFailure{}
	for _, d := range denials {
		failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{Subject: d.Subject, Description: d.Description,
			ApiService: "toolgrant", QuotaId: d.Quota, QuotaMetric: d.Unit, QuotaValue: d.Limit,
			QuotaDimensions: map[string]string{"used": strconv.FormatInt(d.Used, 10), "held": strconv.FormatInt(d.Held, 10)}})
	}
	return failure
}

// translateStreamErrors is translateErrors of streams.
func translateStreamErrors(logger *slog.Logger) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
		_, err = translateErrors(logger)(stream.Context(), nil, &grpc.UnaryServerInfo{FullMethod: info.FullMethod},
			func(context.Context, any) (any, error) { return nil, handle(server, stream) })
		return err
	}
}

// sharedValidator evaluates the rules of the protos. The servers of a process have one in common: it keeps what it
// compiles of messages' rules, which takes longer than all else when a server starts.
var sharedValidator = sync.OnceValues(func() (protovalidate.Validator, error) { return protovalidate.New() })

// validate refuses requests that break the rules of the protos, naming every field and rule.
func validate(validator protovalidate.Validator) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := validateRequest(validator, request); err != nil {
			return nil, err
		}
		return handle(ctx, request)
	}
}

// validateStream is validate of streams.
func validateStream(validator protovalidate.Validator) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		return handle(server, &validatedStream{stream, validator})
	}
}

// validatedStream validates what it receives.
type validatedStream struct {
	grpc.ServerStream
	validator protovalidate.Validator
}

// RecvMsg implements grpc.ServerStream.
func (s *validatedStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	return validateRequest(s.validator, message)
}

func validateRequest(validator protovalidate.Validator, request any) error {
	message, ok := request.(proto.Message)
	if !ok || plain(request) {
		return nil
	}
	if violations := undecodable(message); len(violations) > 0 {
		return fault.Invalid(violations...)
	}
	if _, ownCheck := request.(*toolgrantv1.ApplyManifestRequest); ownCheck {
		return nil // it reports these faults together with others
	}
	violations, err := violationsOf(validator, withoutArguments(message))
	if err == nil && len(violations) > 0 {
		err = fault.Invalid(violations...)
	}
	return err
}

// violationsOf returns every rule of the protos that a message breaks, and what of it cannot be stored.
func violationsOf(validator protovalidate.Validator, message proto.Message) ([]fault.Violation, error) {
	violations := structFaults(message)
	err := validator.Validate(message)
	if err == nil {
		return violations, nil
	}
	var broken *protovalidate.ValidationError
	if !errors.As(err, &broken) {
		return nil, err
	}
	for _, v := range broken.Violations {
		violations = append(violations, fault.Violation{
			Field: protovalidate.FieldPathString(v.Proto.GetField()), Description: v.Proto.GetMessage()})
	}
	return violations, nil
}
