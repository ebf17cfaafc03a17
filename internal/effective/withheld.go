package effective

import (
	"cmp"
	"iter"
	"slices"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Reason is why a tool is not given to a model.
type Reason string

// The reasons, in the order in which they are tried: the first that applies is reported.
const (
	ReasonNone              Reason = ""
	ReasonRetired           Reason = "RETIRED"
	ReasonTypeDisabled      Reason = "TYPE_DISABLED"
	ReasonOwnedByOther      Reason = "OWNED_BY_OTHER"
	ReasonRevokedByGroup    Reason = "REVOKED_BY_GROUP"
	ReasonNotOffered        Reason = "NOT_OFFERED"
	ReasonMissingCapability Reason = "MISSING_CAPABILITY"
	ReasonQuarantined       Reason = "QUARANTINED"
	ReasonShadowed          Reason = "SHADOWED"
)

// Withheld is a tool that is not given to the model, and what that rests on.
type Withheld struct {
	Tool   id.Tool
	Reason Reason
	// Message and MessageZH are fit to show the user.
	Message, MessageZH string

	MissingCapabilities []string
	Groups              []id.Group // that revoke it
	GrantingGroups      []id.Group // that would grant it
	Surfaces            []availability.Surface
	ShadowedBy          id.Tool
}

// Withheld yields the tools that are enabled but not effective, by id.
func (a *Answer) Withheld() iter.Seq[Withheld] {
	rest := a.Enable.Enabled.Difference(a.Effective)
	tools := slices.AppendSeq(make([]uint, 0, rest.Count()), rest.EachSet())
	slices.SortFunc(tools, func(x, y uint) int {
		return cmp.Compare(a.world.Catalog.Tool(x).ID, a.world.Catalog.Tool(y).ID)
	})
	return func(yield func(Withheld) bool) {
		for _, n := range tools {
			if !yield(a.withhold(n)) {
				return
			}
		}
	}
}

// Reason returns why a tool is not available, or why, though available, it is not given to the model; none
// if it is effective or merely not enabled.
func (a *Answer) Reason(tool uint) Reason {
	c, v := a.world.Catalog, &a.Availability
	owned := c.Private().Test(tool) && !v.Foreign.Test(tool)
	switch {
	case c.Retired().Test(tool):
		return ReasonRetired
	case c.TypeDisabled().Test(tool):
		return ReasonTypeDisabled
	case v.Foreign.Test(tool):
		return ReasonOwnedByOther
	case v.Revoked.Test(tool) && !owned:
		return ReasonRevokedByGroup
	case !v.Offered.Test(tool) && !v.Granted.Test(tool) && !owned:
		return ReasonNotOffered
	case v.Incapable.Test(tool):
		return ReasonMissingCapability
	case c.Quarantined().Test(tool):
		return ReasonQuarantined
	}
	if _, shadowed := a.shadowed[tool]; shadowed {
		return ReasonShadowed
	}
	return ReasonNone
}

// withhold says why a tool is not given to the model, with what that rests on.
func (a *Answer) withhold(tool uint) Withheld {
	w := Withheld{Tool: a.world.Catalog.Tool(tool).ID, Reason: a.Reason(tool)}
	switch w.Reason {
	case ReasonRevokedByGroup:
		w.Groups = a.Availability.RevokingGroups(tool)
		w.GrantingGroups = a.Availability.GrantingGroups(tool)
	case ReasonNotOffered:
		w.GrantingGroups = a.Availability.GrantingGroups(tool)
		w.Surfaces = a.otherSurfaces(tool)
	case ReasonMissingCapability:
		w.MissingCapabilities = a.world.Availability.MissingCapabilities(a.question.User, a.question.Surface, tool)
		w.Surfaces = a.otherSurfaces(tool)
	case ReasonShadowed:
		w.ShadowedBy = a.world.Catalog.Tool(a.shadowed[tool]).ID
	}
	w.Message, w.MessageZH = a.messages(tool, &w)
	return w
}

// otherSurfaces returns the user's other surfaces on which a tool is available.
func (a *Answer) otherSurfaces(tool uint) []availability.Surface {
	if a.elsewhere == nil {
		a.elsewhere = a.Availability.Elsewhere(a.question.User, a.question.Surface)
	}
	found := make([]availability.Surface, 0, 8)
	for _, e := range a.elsewhere {
		if e.Available.Test(tool) {
			found = append(found, e.Surface)
		}
	}
	return a.surfacesInWords(found).list
}
