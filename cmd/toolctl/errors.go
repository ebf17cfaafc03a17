package main

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Exit statuses, for scripts.
const (
	exitError       = 1 // anything else
	exitRefused     = 2 // the request breaks rules
	exitMissing     = 3 // something named does not exist
	exitUnavailable = 4 // the server or its database is away
)

func exitStatus(err error) int {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.AlreadyExists:
		return exitRefused
	case codes.NotFound:
		return exitMissing
	case codes.Unavailable, codes.DeadlineExceeded:
		return exitUnavailable
	}
	return exitError
}

// explainError words an error with a line for every field at fault.
func explainError(err error) string {
	st, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	var lines []string
	for _, detail := range st.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				lines = append(lines, "  "+v.GetField()+": "+v.GetDescription())
			}
		}
	}
	if len(lines) == 0 {
		return st.Message()
	}
	headline, _, _ := strings.Cut(st.Message(), ": ")
	return headline + "\n" + strings.Join(lines, "\n")
}
