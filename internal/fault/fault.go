// Package fault is the one vocabulary of errors: what kind it is, why, safe words, and the fields at fault.
// It knows nothing of gRPC or SQL; adapters translate to and from it.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is what a caller can do about a fault.
type Kind int

// The kinds; the zero value is a fault of the server.
const (
	Internal Kind = iota
	InvalidArgument
	NotFound
	AlreadyExists
	PermissionDenied
	FailedPrecondition
	OutOfRange
	Aborted
	ResourceExhausted
	Unavailable
	Unauthenticated
)

// Reason is the name of a value of the API's ErrorReason, without its prefix.
type Reason string

// The reasons. The API's documentation says what each means.
const (
	ReasonInvalidRequest      Reason = "INVALID_REQUEST"
	ReasonNotFound            Reason = "NOT_FOUND"
	ReasonAlreadyExists       Reason = "ALREADY_EXISTS"
	ReasonRequestIDReused     Reason = "REQUEST_ID_REUSED"
	ReasonDeviceOfAnotherUser Reason = "DEVICE_OF_ANOTHER_USER"
	ReasonChatOfAnotherUser   Reason = "CHAT_OF_ANOTHER_USER"
	ReasonChatEnded           Reason = "CHAT_ENDED"
	ReasonCoreTool            Reason = "CORE_TOOL"
	ReasonInUse               Reason = "IN_USE"
	ReasonEtagMismatch        Reason = "ETAG_MISMATCH"
	ReasonConflict            Reason = "CONFLICT"
	ReasonOtherDatabase       Reason = "REVISION_OF_ANOTHER_DATABASE"
	ReasonFromTheFuture       Reason = "REVISION_FROM_THE_FUTURE"
	ReasonDatabaseUnavailable Reason = "DATABASE_UNAVAILABLE"
	ReasonInternal            Reason = "INTERNAL"
	ReasonTooLarge            Reason = "TOO_LARGE"
	ReasonOperationSettled    Reason = "OPERATION_SETTLED"
	ReasonCountersUnavailable Reason = "COUNTERS_UNAVAILABLE"
	ReasonQuotaExceeded       Reason = "QUOTA_EXCEEDED"
	ReasonApprovalDecided     Reason = "APPROVAL_DECIDED"
	ReasonCallReported        Reason = "CALL_REPORTED"
	ReasonServerBusy          Reason = "SERVER_BUSY"
	ReasonCallerBusy          Reason = "CALLER_BUSY"
	ReasonDeadlineRequired    Reason = "DEADLINE_REQUIRED"
	ReasonUnauthenticated     Reason = "UNAUTHENTICATED"
	ReasonRoleNotAllowed      Reason = "ROLE_NOT_ALLOWED"
	ReasonAnotherUser         Reason = "ANOTHER_USER"
	ReasonAPIKeyEnded         Reason = "API_KEY_ENDED"
	ReasonIssuerUnavailable   Reason = "ISSUER_UNAVAILABLE"
)

// Violation is one field at fault and the rule that it breaks.
type Violation struct {
	Field       string // a path in the request, for example changes[2].tool_id
	Description string
}

// Fault is an error that a caller may see.
type Fault struct {
	Kind       Kind
	Reason     Reason
	Message    string
	Resource   string // NotFound, AlreadyExists: the kind of object, for example "tool"
	ID         string // NotFound, AlreadyExists: its id
	Violations []Violation
	Denials    []Denial      // ResourceExhausted: the rules that denied
	RetryAfter time.Duration // ResourceExhausted, Unavailable: how long to wait; 0: waiting does not help, or it is not known how long
	Cause      error         // for the log, never for the caller
}

// Denial is a rule of quotas that denied a request.
type Denial struct {
	Quota       string
	Subject     string // whose units it counts
	Unit        string
	Limit       int64
	Used, Held  int64
	Description string
}

// Error words the fault with everything at fault.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.Message)
	for i, v := range f.Violations {
		b.WriteString(map[bool]string{true: ": ", false: "; "}[i == 0])
		b.WriteString(v.Field + ": " + v.Description)
	}
	return b.String()
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// As returns the fault in an error's chain.
func As(err error) (*Fault, bool) {
	if err == nil {
		return nil, false // without an allocation
	}
	var f *Fault
	ok := errors.As(err, &f)
	return f, ok
}

// Invalid is a request that breaks rules.
func Invalid(violations ...Violation) *Fault {
	return &Fault{Kind: InvalidArgument, Reason: ReasonInvalidRequest, Message: "the request breaks rules", Violations: violations}
}

// Missing is something named that does not exist (for this user).
func Missing(resource, name string) *Fault {
	return &Fault{Kind: NotFound, Reason: ReasonNotFound, Message: fmt.Sprintf("no such %s: %q", resource, name), Resource: resource, ID: name}
}

// Exists is an object whose id is taken.
func Exists(resource, name string) *Fault {
	return &Fault{Kind: AlreadyExists, Reason: ReasonAlreadyExists, Message: fmt.Sprintf("%s %q exists already", resource, name), Resource: resource, ID: name}
}
