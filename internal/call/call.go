// Package call decides whether one call of a function may be made, and says why not and what to do next.
//
// Decide in pipeline.go reads top to bottom; each stage is a pure decision in a file of its own:
//
//	source.go        which tool the function belongs to
//	effective.go     whether the model is given that tool
//	precondition.go  whether what the tool requires is there
//	arguments.go     whether the arguments satisfy the function's schema
//	risk.go          whether so risky a call was enabled, and, in approval.go, approved
//	health.go        whether the tool and its server work
//
// Quotas come last. They are counted elsewhere, so the caller takes them after an ALLOW, and quota.go words what they
// deny. An Index is what is compiled once per catalogue; Facts are what one decision rests on besides. What is known
// of a call from its ALLOW to its report is a Record, in memory.go.
package call

import (
	"encoding/json"
	"time"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Request is the question about one call.
type Request struct {
	Call     id.Call // names the call among all
	Chat     id.Chat
	Turn     *int32 // nil: the chat's
	Function string // as the model called it
	Source   string // as the model named it; empty: it did not
	// Arguments as JSON decodes them; nil: not told, so not checked.
	Arguments map[string]any
	// ModelCapabilities are what the model can do, ProviderCapabilities what its provider supports.
	ModelCapabilities, ProviderCapabilities []string
	Provider                                string // the model's; empty: not told
}

// Facts is all that a decision rests on besides the request.
type Facts struct {
	Index *Index
	// Answer tells what is effective for the user, surface and turn, over the Index's catalogue. Of two decisions at
	// a time each needs one of its own: it words lazily why tools are withheld.
	Answer     *effective.Answer
	User       id.User
	Now        time.Time
	Deployment Deployment
	// Approvals returns those that a call may rest on; others do no harm. It is asked only about risky calls, perhaps
	// more than once. Nil: there are none.
	Approvals func(*approval.Call) []approval.Approval
	Health    Health   // nil: all is well
	Synonyms  Synonyms // nil: DefaultSynonyms
}

// Decision is whether a call may be made.
type Decision string

// The decisions.
const (
	Allow         Decision = "ALLOW"
	Deny          Decision = "DENY"
	NeedsApproval Decision = "NEEDS_APPROVAL"
)

// Reason is why a call may not be made.
type Reason string

// The reasons, in the order in which they are tried.
const (
	ReasonNone                 Reason = ""
	ReasonUnknownSource        Reason = "UNKNOWN_SOURCE"
	ReasonUnknownFunction      Reason = "UNKNOWN_FUNCTION"
	ReasonFunctionElsewhere    Reason = "FUNCTION_ELSEWHERE"
	ReasonAmbiguousFunction    Reason = "AMBIGUOUS_FUNCTION"
	ReasonQuarantined          Reason = "QUARANTINED"
	ReasonNotEnabled           Reason = "NOT_ENABLED"
	ReasonWithheld             Reason = "WITHHELD"
	ReasonPreconditionFailed   Reason = "PRECONDITION_FAILED"
	ReasonBadArguments         Reason = "BAD_ARGUMENTS"
	ReasonNotEnabledExplicitly Reason = "NOT_ENABLED_EXPLICITLY"
	ReasonApprovalRequired     Reason = "APPROVAL_REQUIRED"
	ReasonApprovalDenied       Reason = "APPROVAL_DENIED"
	ReasonApprovalExpired      Reason = "APPROVAL_EXPIRED"
	ReasonUnhealthy            Reason = "UNHEALTHY"
	ReasonQuotaExhausted       Reason = "QUOTA_EXHAUSTED"
	ReasonQuotaUnavailable     Reason = "QUOTA_UNAVAILABLE"
)

// Answer is whether a call may be made, why not, and what to do next.
type Answer struct {
	Decision           Decision
	Reason             Reason
	Message, MessageZH string // fit to show the user; empty if it is allowed
	Next               NextStep
	Trace              []string // how the source was found, sentence by sentence

	// Tool and Function are what the call resolved to; empty: nothing. Function is the name where the code runs.
	Tool     id.Tool
	Function string
	Risk     catalog.Risk
	Binding  Binding // if it is allowed
	// Fallback are the tools to use if the call fails or may not be made, best first.
	Fallback []id.Tool
	// Approval is what the call rests on or waits for. Empty while it needs one: it has yet to be asked for.
	Approval id.Approval
	Withheld *effective.Withheld // WITHHELD, NOT_ENABLED: why the tool is not available
	// Probes are breakers that let one call through to see whether all is well again. Who makes the call must be that
	// one: if another is, the decision is made again with Facts that say so.
	Probes []Subject

	candidate *candidate // nil: nothing
}

// NextStep is what to do after a refusal. At most one field is set.
type NextStep struct {
	Enable     *EnableRequest
	Approve    bool // wait for a decision on Answer.Approval, then ask again with the same call id
	RetryAfter time.Duration
	Fallback   []string // functions to call instead, best first
	Faults     []Fault  // in the arguments
	Sources    []FunctionSource
}

// EnableRequest is the request that enables a tool in a chat.
type EnableRequest struct {
	Chat      id.Chat
	RequestID string // the same whenever it is derived from one call
	Turn      *int32
	Tool      id.Tool
}

// FunctionSource is where a function is.
type FunctionSource struct {
	Source     string // "native", or a server's id
	Tool       id.Tool
	UniqueName string
}

// Binding is how to make a call: in code, or on an MCP server.
type Binding struct {
	Native    bool
	ToolClass string       // native
	Server    id.MCPServer // MCP; empty: the built-in one
	Function  string       // MCP: its name there
	Endpoint  string       // MCP
	// HeadersFromEnv are the server's, of MCP, with what the tool adds.
	HeadersFromEnv map[string]string
	Config         json.RawMessage // the tool's; nil: {}
}
