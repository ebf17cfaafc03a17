package revision

import (
	"github.com/toolgrant/toolgrant/internal/fault"
)

// Require tells whether a state of a database includes the revision that a client asks for: nil; or a fault
// that says that the token is malformed, another database's, or not included yet, which is OutOfRange.
func Require(token string, now Revision) error {
	r, err := Parse(token)
	switch {
	case err != nil:
		return fault.Invalid(fault.Violation{Field: "consistency.at_least_as_fresh", Description: err.Error()})
	case r.Database != now.Database:
		return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonOtherDatabase,
			Message: "the revision was made by another database: drop it and read again"}
	case !now.Includes(r):
		return &fault.Fault{Kind: fault.OutOfRange, Reason: fault.ReasonFromTheFuture,
			Message: "the revision lies in this database's future: was it restored from a backup?"}
	}
	return nil
}
