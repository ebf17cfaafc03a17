// Package learning makes past requests of searches that led to calls that went well. What PostgreSQL holds of them is all
// that it depends on: servers of one database agree, and one that starts anew knows what it knew.
//
//	SearchTools ──Log──► searches ─┐
//	                               ├─ joined when an outcome is written ──► search_uses ──Follower──► Learned
//	ReportCall ──► call_outcomes ──┘
//
// It never touches risk, permissions or approvals.
package learning

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Use is a call that went well, and the search that led to it.
type Use struct {
	Call     id.Call
	User     id.User
	Groups   []id.Group // the user's, when he searched
	Tool     id.Tool
	Private  bool // the tool was; nobody but its owner learns from it
	Features discovery.Features
	Time     time.Time // when the call was reported
	Written  time.Time // by the database's clock
}

// halfLife is how long it takes until a use counts half.
const halfLife = 30 * 24 * time.Hour

// GroupShare and UserShare are how much the histories of a group and of a user count where they are laid over that of all.
const (
	GroupShare = 0.3
	UserShare  = 0.7
)

// Learned is what the uses up to an instant teach. It does not change, but for histories that are made when they are
// first needed.
type Learned struct {
	weights discovery.LearnedWeights
	day     time.Time
	common  *discovery.History
	users   map[id.User][]*Use
	groups  map[id.Group][]*Use

	ready *ready
}

// Learn makes what uses teach on a day. The order of uses does not matter.
func Learn(uses []Use, weights discovery.LearnedWeights, now time.Time) *Learned {
	l := &Learned{weights: weights, day: Day(now), users: map[id.User][]*Use{}, groups: map[id.Group][]*Use{}, ready: newReady()}
	var all []*Use
	for i := range uses {
		u := &uses[i]
		l.users[u.User] = append(l.users[u.User], u)
		if u.Private {
			continue
		}
		all = append(all, u)
		for _, g := range u.Groups {
			l.groups[g] = append(l.groups[g], u)
		}
	}
	l.common = l.history(all, everybody)
	return l
}

// Day is the day of an instant. Uses age by whole days, so that servers agree.
func Day(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// Whose a history is.
const (
	everybody = true  // no contributor counts for more than his bounds
	oneUser   = false // who may teach himself what he likes
)

// history makes a history of uses, which count the less, the older they are.
func (l *Learned) history(uses []*Use, bounded bool) *discovery.History {
	return l.weighed(uses, bounded, func(*Use) float64 { return 1 })
}

// weighed is history with weights of the uses besides their age.
func (l *Learned) weighed(uses []*Use, bounded bool, weight func(*Use) float64) *discovery.History {
	requests := make([]discovery.Request, len(uses))
	for i, u := range uses {
		age := max(0, l.day.Sub(Day(u.Time)))
		requests[i] = discovery.Request{Features: u.Features, Tools: []id.Tool{u.Tool}, Time: u.Time, Weight: weight(u) * math.Exp2(-float64(age)/float64(halfLife))}
		if bounded {
			requests[i].Contributor = string(u.User)
		}
	}
	return discovery.NewHistory(requests, &l.weights, discovery.DefaultHistoryLimits())
}

// Common is what all users teach.
func (l *Learned) Common() []discovery.Level { return []discovery.Level{{History: l.common, Share: 1}} }

// Own are what a user's groups and he himself teach, to be laid over Common.
func (l *Learned) Own(user id.User, groups []id.Group) []discovery.Level {
	var levels []discovery.Level
	if history := l.ofGroups(groups); history != nil {
		levels = append(levels, discovery.Level{History: history, Share: GroupShare})
	}
	if uses := shared(l.users[user]); len(uses) > 0 {
		levels = append(levels, discovery.Level{Share: UserShare,
			History: l.ready.get("user "+string(user), func() *discovery.History { return l.history(uses, oneUser) })})
	}
	return levels
}

// maxGroupUses is how many uses of a user's groups count, the newest, which bounds what a search costs.
const maxGroupUses = 16_384

// ofGroups is what all of a user's groups teach together; nil: nothing. A use counts by the share of the user's groups
// that its contributor was in: a group that everybody is in says little of what the user does, those of his own line
// more.
func (l *Learned) ofGroups(groups []id.Group) *discovery.History {
	var telling []id.Group
	for _, g := range slices.Compact(slices.Sorted(slices.Values(groups))) {
		if len(l.groups[g]) > 0 {
			telling = append(telling, g)
		}
	}
	if len(telling) == 0 {
		return nil
	}
	key := "groups"
	for _, g := range telling {
		key += " " + string(g) // which has no spaces
	}
	return l.ready.get(key, func() *discovery.History {
		common := map[*Use]int{}
		for _, g := range telling {
			for _, u := range l.groups[g] {
				common[u]++
			}
		}
		uses := slices.SortedFunc(maps.Keys(common), func(a, b *Use) int { return newest(*a, *b) })
		return l.weighed(uses[:min(len(uses), maxGroupUses)], everybody, func(u *Use) float64 { return float64(common[u]) / float64(len(telling)) })
	})
}

func shared(uses []*Use) []*Use {
	return slices.DeleteFunc(slices.Clone(uses), func(u *Use) bool { return u.Private })
}

// Private is what a user teaches of his own tools.
func (l *Learned) Private(user id.User) []discovery.Level {
	own := slices.DeleteFunc(slices.Clone(l.users[user]), func(u *Use) bool { return !u.Private })
	if len(own) == 0 {
		return nil
	}
	return []discovery.Level{{Share: 1, History: l.ready.get("private "+string(user), func() *discovery.History { return l.history(own, oneUser) })}}
}

// newest orders uses, the newest first.
func newest(a, b Use) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Call, b.Call)) }
