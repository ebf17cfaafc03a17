package admin

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/toolgrant/toolgrant/internal/fault"
)

// Plan returns what an edit changes, in the order in which it is written, or every fault. stored holds the
// whole catalogue, and of the users those that the edit and the catalogue name (all, to prune users);
// referrers are those of the objects that go.
func Plan(stored Manifest, e Edit, referrers []Referrer) ([]Change, error) {
	before := make(map[Ref]any)
	for _, o := range stored.objects() {
		before[o.Ref] = o.value
	}
	gone := e.Gone(stored)
	if err := validate(stored, e, gone, referrers); err != nil {
		return nil, err
	}
	e.Canonicalize() // not before: faults name places as they were given
	var changes []Change
	var outdated []fault.Violation
	check := func(c Change) {
		if etag := e.Etags[c.Ref]; etag != "" && (before[c.Ref] == nil || Etag(before[c.Ref]) != etag) {
			outdated = append(outdated, fault.Violation{Field: e.path(c.Ref) + "etag", Description: "the object has changed since"})
		}
		changes = append(changes, c)
	}
	wanted := e.objects()
	slices.SortStableFunc(wanted, func(a, b object) int {
		if a.Section != b.Section {
			return 0 // sections are in order already
		}
		return cmp.Compare(a.ID, b.ID)
	})
	for _, o := range wanted {
		old, exists := before[o.Ref]
		if !exists {
			check(Change{Ref: o.Ref, Action: ActionCreate, Object: o.value})
		} else if fields := difference(old, o.value); len(fields) > 0 {
			check(Change{Ref: o.Ref, Action: ActionUpdate, Fields: fields, Before: old, Object: o.value})
		}
	}
	// What refers goes before what is referred to.
	for _, o := range slices.Backward(stored.objects()) {
		if gone[o.Ref] {
			check(Change{Ref: o.Ref, Action: ActionDelete, Object: o.value})
		}
	}
	if len(outdated) > 0 {
		return nil, &fault.Fault{Kind: fault.Aborted, Reason: fault.ReasonEtagMismatch,
			Message: "the etag is not the stored object's: read it again", Violations: outdated}
	}
	return changes, nil
}

// Gone says which of the stored objects go.
func (e *Edit) Gone(stored Manifest) map[Ref]bool {
	gone := make(map[Ref]bool)
	for _, ref := range e.Delete {
		gone[ref] = true
	}
	if !e.Prune {
		return gone
	}
	kept, pruned := make(map[Ref]bool), make(map[Section]bool)
	for _, o := range e.objects() {
		kept[o.Ref], pruned[o.Section] = true, true
	}
	for _, o := range stored.objects() {
		if pruned[o.Section] && !kept[o.Ref] {
			gone[o.Ref] = true
		}
	}
	return gone
}

// path is where an object stands in the edit's manifest, with a point; empty if it doesn't.
func (e *Edit) path(ref Ref) string {
	i := 0
	for _, o := range e.objects() {
		if o.Section != ref.Section {
			continue
		}
		if o.Ref == ref {
			return fmt.Sprintf("%s[%d].", ref.Section, i)
		}
		i++
	}
	return ""
}
