// Package revision names states of the database. A revision is a snapshot as PostgreSQL means it: of each
// transaction it says whether its writes are included. Sequence numbers could not: they are given before
// the commit, and commit out of order. Tokens are opaque to clients; they sort byte-wise in the order of
// one client's writes, and carry the identity of their database, so that those of another (a restored copy,
// say) are noticed.
package revision

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Revision is a snapshot of one database.
type Revision struct {
	// Database identifies the database.
	Database uint64
	// Every transaction below Xmin is included (or was rolled back); none from Xmax on is.
	Xmin, Xmax uint64
	// InProgress are those in between that are not included, ascending.
	InProgress []uint64
}

// FromSnapshot reads PostgreSQL's text form of a snapshot, xmin:xmax:xip,xip...
func FromSnapshot(database uint64, text string) (Revision, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Revision{}, fmt.Errorf("not a snapshot: %q", text)
	}
	r := Revision{Database: database}
	var err error
	if r.Xmin, err = strconv.ParseUint(parts[0], 10, 64); err != nil {
		return Revision{}, err
	}
	if r.Xmax, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return Revision{}, err
	}
	for _, p := range strings.Split(parts[2], ",") {
		if p == "" {
			continue
		}
		xid, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			return Revision{}, err
		}
		r.InProgress = append(r.InProgress, xid)
	}
	slices.Sort(r.InProgress)
	return r, nil
}

// With returns the revision with one more transaction included: the writer's own, which its snapshot does
// not show. Transactions between the snapshot and it were still running when the snapshot was taken.
func (r Revision) With(xid uint64) Revision {
	own := Revision{Database: r.Database, Xmin: r.Xmin, Xmax: max(r.Xmax, xid+1)}
	for _, running := range r.InProgress {
		if running != xid {
			own.InProgress = append(own.InProgress, running)
		}
	}
	for running := r.Xmax; running < xid; running++ {
		own.InProgress = append(own.InProgress, running)
	}
	return own
}

// Without returns the revision with one transaction less. A snapshot leaves its own transaction out of those in
// progress, so that, if later ones have ended, it seems to be included.
func (r Revision) Without(xid uint64) Revision {
	if i, found := slices.BinarySearch(r.InProgress, xid); xid < r.Xmax && !found {
		r.InProgress = slices.Insert(slices.Clone(r.InProgress), i, xid)
		r.Xmin = min(r.Xmin, xid)
	}
	return r
}

// IncludesTransaction tells whether a transaction's writes are in the state.
func (r Revision) IncludesTransaction(xid uint64) bool {
	if xid < r.Xmin {
		return true
	}
	_, running := slices.BinarySearch(r.InProgress, xid)
	return xid < r.Xmax && !running
}

// Includes tells whether all that is in another revision of the same database is in this one too.
func (r Revision) Includes(other Revision) bool {
	for _, running := range r.InProgress {
		if other.IncludesTransaction(running) {
			return false
		}
	}
	// From Xmax on nothing is in r. Were there more numbers than exceptions, one would be in other.
	if other.Xmax > r.Xmax && other.Xmax-r.Xmax > uint64(len(other.InProgress)) {
		return false
	}
	for xid := r.Xmax; xid < other.Xmax; xid++ {
		if other.IncludesTransaction(xid) {
			return false
		}
	}
	return true
}

const (
	prefix = "r1-"
	// Room for the transactions of some thousand connections.
	maxTokenBytes = 16384
)

// String returns the token: r1-<database>-<xmax>-<xmin>[-<in progress>...], hexadecimal.
func (r Revision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%016x-%016x-%x", prefix, r.Database, r.Xmax, r.Xmin)
	for _, xid := range r.InProgress {
		// As distances from Xmin they are short.
		fmt.Fprintf(&b, "-%x", xid-min(r.Xmin, xid))
	}
	return b.String()
}

// ErrMalformed is the error of Parse.
var ErrMalformed = errors.New("not a revision that this service returned")

// Parse reads a token.
func Parse(token string) (Revision, error) {
	text, ok := strings.CutPrefix(token, prefix)
	parts := strings.Split(text, "-")
	if !ok || len(token) > maxTokenBytes || len(parts) < 3 || len(parts[0]) != 16 || len(parts[1]) != 16 {
		return Revision{}, ErrMalformed
	}
	numbers := make([]uint64, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 16, 64)
		if err != nil || p != strings.ToLower(p) {
			return Revision{}, ErrMalformed
		}
		numbers[i] = n
	}
	r := Revision{Database: numbers[0], Xmax: numbers[1], Xmin: numbers[2]}
	if r.Xmin > r.Xmax {
		return Revision{}, ErrMalformed
	}
	for _, distance := range numbers[3:] {
		if distance > math.MaxUint64-r.Xmin || r.Xmin+distance >= r.Xmax {
			return Revision{}, ErrMalformed
		}
		r.InProgress = append(r.InProgress, r.Xmin+distance)
	}
	if !slices.IsSorted(r.InProgress) || r.String() != token {
		return Revision{}, ErrMalformed
	}
	return r, nil
}
