package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Exit statuses, for scripts.
const (
	exitError       = 1
	exitRefused     = 2
	exitMissing     = 3
	exitUnavailable = 4
	exitExhausted   = 5
)

const exitStatuses = `Exit statuses:
  0  done
  1  any other failure, such as a wrong flag
  2  refused: a manifest or a request breaks rules, does not fit what is stored, or its caller may not
  3  something named does not exist
  4  the server, its database or its counters are away: try again
  5  quotas deny it: the message says how long to wait`

// manifestError is a refusal of manifests: a line for every fault, with its position where there is one.
type manifestError struct {
	headline string
	faults   []string
}

// maxFaults is how many faults a person is shown at once.
const maxFaults = 100

// Error implements error.
func (e *manifestError) Error() string {
	shown := e.faults
	if more := len(shown) - maxFaults; more > 0 {
		shown = append(slices.Clone(shown[:maxFaults]), fmt.Sprintf("and %d more", more))
	}
	return e.headline + "\n" + strings.Join(shown, "\n")
}

func exitStatus(err error) int {
	if refused := (*manifestError)(nil); errors.As(err, &refused) {
		return exitRefused
	}
	if refused := (*refusedCall)(nil); errors.As(err, &refused) {
		return refused.status()
	}
	if denials, _ := denialsOf(err); len(denials) > 0 {
		return exitExhausted
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated, codes.AlreadyExists, codes.Aborted,
		codes.ResourceExhausted:
		return exitRefused
	case codes.NotFound:
		return exitMissing
	case codes.Unavailable, codes.DeadlineExceeded:
		return exitUnavailable
	}
	return exitError
}

// violationsOf returns what a server's error says about fields.
func violationsOf(err error) []*errdetails.BadRequest_FieldViolation {
	var violations []*errdetails.BadRequest_FieldViolation
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			violations = append(violations, bad.GetFieldViolations()...)
		}
	}
	return violations
}

// headlineOf is a message without the fields at fault, which it goes on with, all in one line.
func headlineOf(message string, violations []*errdetails.BadRequest_FieldViolation) string {
	headline, _, _ := strings.Cut(message, ": "+violations[0].GetField()+": ")
	return headline
}

// explainError words an error with a line for every field at fault.
func explainError(err error) string {
	st, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	if denials, wait := denialsOf(err); len(denials) > 0 {
		return explainDenial(st.Message(), denials, wait, time.Now())
	}
	violations := violationsOf(err)
	if len(violations) == 0 {
		return st.Message()
	}
	text := headlineOf(st.Message(), violations)
	for _, v := range violations {
		text += "\n  " + v.GetField() + ": " + v.GetDescription()
	}
	return text
}
