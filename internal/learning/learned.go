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
	"math"
	"slices"
	"sync"
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

// maxLevels is how many histories of users and groups are kept ready.
const maxLevels = 4096

// Learned is what the uses up to an instant teach. It does not change, but for histories that are made when they are
// first needed.
type Learned struct {
	weights discovery.LearnedWeights
	day     time.Time
	common  *discovery.History
	users   map[id.User][]*Use
	groups  map[id.Group][]*Use

	mu     sync.Mutex
	levels map[string]*discovery.History
}

// Learn makes what uses teach on a day. The order of uses does not matter.
func Learn(uses []Use, weights discovery.LearnedWeights, now time.Time) *Learned {
	l := &Learned{weights: weights, day: Day(now), users: map[id.User][]*Use{}, groups: map[id.Group][]*Use{}, levels: map[string]*discovery.History{}}
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
	l.common = l.history(all, true)
	return l
}

// Day is the day of an instant. Uses age by whole days, so that servers agree.
func Day(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// history makes a history; bounded: no contributor counts for more than his bounds.
func (l *Learned) history(uses []*Use, bounded bool) *discovery.History {
	requests := make([]discovery.Request, len(uses))
	for i, u := range uses {
		age := max(0, l.day.Sub(Day(u.Time)))
		requests[i] = discovery.Request{Features: u.Features, Tools: []id.Tool{u.Tool}, Weight: math.Exp2(-float64(age) / float64(halfLife))}
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
	for _, g := range slices.Sorted(slices.Values(groups)) {
		if uses := l.groups[g]; len(uses) > 0 {
			levels = append(levels, discovery.Level{History: l.level("group "+string(g), uses, true), Share: GroupShare})
			break // one is enough, and bounds what a search costs
		}
	}
	if uses := shared(l.users[user]); len(uses) > 0 {
		levels = append(levels, discovery.Level{History: l.level("user "+string(user), uses, false), Share: UserShare})
	}
	return levels
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
	return []discovery.Level{{History: l.level("private "+string(user), own, false), Share: 1}}
}

func (l *Learned) level(key string, uses []*Use, bounded bool) *discovery.History {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.levels[key]
	if !ok {
		if h = l.history(uses, bounded); len(l.levels) < maxLevels {
			l.levels[key] = h
		}
	}
	return h
}

// newest orders uses, the newest first.
func newest(a, b Use) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Call, b.Call)) }
