package health

// Outcome is how a call went.
type Outcome string

// The outcomes. What they count for is in the package's documentation.
const (
	Success      Outcome = "SUCCESS"
	Error        Outcome = "ERROR"         // the tool returned an error: it works, but not for this
	Timeout      Outcome = "TIMEOUT"       // it did not answer in time
	Unreachable  Outcome = "UNREACHABLE"   // it could not be reached
	Cancelled    Outcome = "CANCELLED"     // the caller gave up
	BadArguments Outcome = "BAD_ARGUMENTS" // the model's arguments were wrong
)

// transportFailure tells whether the tool gave no answer at all.
func (o Outcome) transportFailure() bool { return o == Timeout || o == Unreachable }

// answered tells whether the tool gave an answer.
func (o Outcome) answered() bool { return o == Success || o == Error }
