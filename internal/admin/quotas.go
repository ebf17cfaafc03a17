package admin

import (
	"fmt"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// checkQuotas checks the rules of the edit's tools and types. Each id may occur once among all that will be stored;
// a rule may go from one tool to another in one edit.
func (w *world) checkQuotas(stored Manifest, e Edit) {
	given := make(map[Ref]bool)
	for _, o := range e.ToolTypes {
		given[Ref{SectionToolTypes, string(o.ID)}] = true
	}
	for _, o := range e.Tools {
		given[Ref{SectionTools, string(o.ID)}] = true
	}
	if len(given) == 0 {
		return
	}
	storedIn := make(map[id.Quota]string)
	left := func(ref Ref, noun string, rules []quota.Rule) {
		for _, r := range rules {
			if !given[ref] && !w.gone[ref] {
				storedIn[r.ID] = fmt.Sprintf("stored %s %s", noun, ref.ID)
			}
		}
	}
	for _, o := range stored.ToolTypes {
		left(Ref{SectionToolTypes, string(o.ID)}, "tool type", o.Quotas)
	}
	for _, o := range stored.Tools {
		left(Ref{SectionTools, string(o.ID)}, "tool", o.Quotas)
	}
	first := make(map[id.Quota]string)
	check := func(section Section, i int, rules []quota.Rule) {
		object := fmt.Sprintf("%s[%d]", section, i)
		for j, r := range rules {
			path := fmt.Sprintf("%s.quotas[%d]", object, j)
			for _, v := range r.Validate() {
				v.Field = path + "." + v.Field
				w.violations = append(w.violations, v)
			}
			if owner, taken := storedIn[r.ID]; taken {
				w.fault(path+".quota_id", "%q is a rule of %s", r.ID, owner)
			}
			switch other, twice := first[r.ID]; {
			case !twice:
				first[r.ID] = object
			case other == object:
				w.fault(path+".quota_id", "%q occurs twice", r.ID)
			default:
				w.fault(path+".quota_id", "%q occurs twice: first in %s", r.ID, other)
			}
		}
	}
	for i, o := range e.ToolTypes {
		check(SectionToolTypes, i, o.Quotas)
	}
	for i, o := range e.Tools {
		check(SectionTools, i, o.Quotas)
	}
}
