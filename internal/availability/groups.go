package availability

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// patches folds the user's active groups, the highest priority first: what a higher one decided stays, and
// at one priority revoke beats grant.
func (s *Snapshot) patches(active []*compiledGroup) (granted, revoked *catalog.Set) {
	granted, revoked = s.catalog.NewSet(), s.catalog.NewSet()
	for len(active) > 0 {
		level := 1
		for level < len(active) && active[level].Priority == active[0].Priority {
			level++
		}
		grants, revokes := s.catalog.NewSet(), s.catalog.NewSet()
		for _, g := range active[:level] {
			grants.InPlaceUnion(g.grants)
			revokes.InPlaceUnion(g.revokes)
		}
		revokes.InPlaceDifference(granted)
		revoked.InPlaceUnion(revokes)
		grants.InPlaceDifference(revoked)
		granted.InPlaceUnion(grants)
		active = active[level:]
	}
	return granted, revoked
}

// activeGroups returns the groups that count, the highest priority first, then by id.
func (s *Snapshot) activeGroups(user *User, now time.Time) []*compiledGroup {
	var active []*compiledGroup
	for _, m := range user.Memberships {
		if g := s.groups[m.Group]; g != nil && m.ActiveAt(now) {
			active = append(active, g)
		}
	}
	slices.SortFunc(active, func(a, b *compiledGroup) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return active
}

// RevokingGroups returns the user's active groups that decided to revoke a revoked tool, sorted.
func (d *Decision) RevokingGroups(tool uint) []id.Group {
	var revoking []id.Group
	var priority int32
	for _, g := range d.active {
		if len(revoking) > 0 && g.Priority < priority {
			break
		}
		if g.revokes.Test(tool) {
			revoking, priority = append(revoking, g.ID), g.Priority
		}
	}
	slices.Sort(revoking)
	return revoking
}

// GrantingGroups returns the groups that would grant a tool to the user, were the user an active member of
// one of them besides, sorted.
func (d *Decision) GrantingGroups(tool uint) []id.Group {
	var granting []id.Group
	for _, g := range d.snapshot.sorted {
		beaten := func(other *compiledGroup) bool { return other.revokes.Test(tool) && other.Priority >= g.Priority }
		if g.grants.Test(tool) && !g.revokes.Test(tool) && !slices.ContainsFunc(d.active, beaten) {
			granting = append(granting, g.ID)
		}
	}
	return granting
}

// Permits tells whether one of the user's active groups gives a permission.
func (d *Decision) Permits(permission string) bool {
	for _, g := range d.active {
		if slices.Contains(g.Permissions, permission) {
			return true
		}
	}
	return false
}
