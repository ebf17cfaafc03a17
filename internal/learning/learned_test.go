package learning_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func use(n int, user, tool, text string, age time.Duration) learning.Use {
	return learning.Use{Call: id.Call(fmt.Sprint(n)), User: id.User(user), Groups: []id.Group{"g-" + id.Group(user[:1])}, Tool: id.Tool(tool),
		Features: discovery.FeaturesOf(text), Time: now.Add(-age)}
}

var tools = []discovery.Tool{{ID: "rain", Name: "forecast"}, {ID: "sun", Name: "tanning"}}

func search(l *learning.Learned, user string, groups []id.Group, text string) discovery.Result {
	r := discovery.NewRanker(discovery.NewIndex(tools), discovery.DefaultWeights(), l.Common()...).Over(l.Own(id.User(user), groups)...)
	return r.Search(discovery.Query{Text: text, Limit: 2})
}

func learn(uses ...learning.Use) *learning.Learned {
	return learning.Learn(uses, discovery.DefaultWeights().Learned, now)
}

// However often one user does a thing, others are moved as if he had done it once; he himself is moved.
func TestOneUserMovesOthersNoFurtherThanOnce(t *testing.T) {
	uses := []learning.Use{use(0, "ann", "rain", "umbrella today", 0), use(1, "bob", "rain", "umbrella today", 0)}
	once := append([]learning.Use{use(2, "eve", "sun", "umbrella today", 0)}, uses...)
	often := append([]learning.Use(nil), uses...)
	for i := range 1000 {
		often = append(often, use(2+i, "eve", "sun", "umbrella today", 0))
	}
	if a, b := search(learn(once...), "cat", nil, "umbrella today"), search(learn(often...), "cat", nil, "umbrella today"); !reflect.DeepEqual(a, b) {
		t.Errorf("once %+v\noften %+v", a, b)
	}
	if m := search(learn(often...), "cat", nil, "umbrella today").Matches; m[0].Tool != "rain" {
		t.Errorf("others find %v", m)
	}
	if m := search(learn(often...), "eve", nil, "umbrella today").Matches; m[0].Tool != "sun" {
		t.Errorf("eve finds %v", m)
	}
}

// All that one user tells of many tools is bounded too.
func TestOneUsersContributionsAreBounded(t *testing.T) {
	var uses []learning.Use
	for i := range 5000 {
		uses = append(uses, use(i, "eve", fmt.Sprint("tool-", i), fmt.Sprint("word", i), 0))
	}
	if kept := learn(uses...).Common()[0].History.Len(); kept != 64 {
		t.Errorf("%d requests of one user are kept, want 64", kept)
	}
}

func TestLearningDoesNotDependOnOrder(t *testing.T) {
	var uses []learning.Use
	for i := range 200 {
		uses = append(uses, use(i, []string{"ann", "bob", "cat"}[i%3], []string{"rain", "sun"}[i%2], fmt.Sprint("umbrella today ", i%7), time.Duration(i)*24*time.Hour))
	}
	want := search(learn(uses...), "ann", []id.Group{"g-a"}, "umbrella today 3")
	for range 5 {
		rand.Shuffle(len(uses), func(i, j int) { uses[i], uses[j] = uses[j], uses[i] })
		if got := search(learn(uses...), "ann", []id.Group{"g-a"}, "umbrella today 3"); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwant %+v", got, want)
		}
	}
}

// A group's habits count for its members more than for others.
func TestGroupsTeachTheirMembers(t *testing.T) {
	uses := []learning.Use{use(0, "ann", "rain", "umbrella today", 0), use(1, "abe", "rain", "umbrella today", 0)}
	for i, user := range []string{"sam", "sue", "sid", "sal"} {
		uses = append(uses, use(10+i, user, "sun", "umbrella today", 0))
	}
	l := learn(uses...)
	share := func(groups []id.Group) float64 {
		for _, m := range search(l, "new", groups, "umbrella today").Matches {
			if m.Tool == "rain" {
				return m.Score
			}
		}
		return 0
	}
	if member, other := share([]id.Group{"g-a"}), share(nil); member <= other {
		t.Errorf("rain scores %v for a member, %v for others", member, other)
	}
}

// All of a user's groups teach him, whatever their ids and order.
func TestAllGroupsOfAUserTeach(t *testing.T) {
	of := func(u learning.Use, groups ...id.Group) learning.Use {
		u.Groups = groups
		return u
	}
	uses := []learning.Use{of(use(0, "ann", "rain", "umbrella today", 0), "a"), of(use(1, "zoe", "sun", "towel today", 0), "z")}
	for i, user := range []string{"sam", "sue", "sid", "sal"} {
		uses = append(uses, of(use(10+i, user, "sun", "umbrella today", 0)), of(use(20+i, user, "rain", "towel today", 0)))
	}
	l := learn(uses...)
	score := func(tool id.Tool, text string, groups ...id.Group) float64 {
		for _, m := range search(l, "new", groups, text).Matches {
			if m.Tool == tool {
				return m.Score
			}
		}
		return 0
	}
	for tool, text := range map[id.Tool]string{"rain": "umbrella today", "sun": "towel today"} {
		if both, none := score(tool, text, "z", "a"), score(tool, text); both <= none {
			t.Errorf("%s scores %v for a member of both groups, %v for others", tool, both, none)
		}
	}
	want := search(l, "new", []id.Group{"a", "z"}, "umbrella today")
	for _, groups := range [][]id.Group{{"z", "a"}, {"a", "z", "a"}, {"silent", "z", "a"}} {
		if got := search(l, "new", groups, "umbrella today"); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v, want %+v", groups, got, want)
		}
	}
}

// Of a user's groups the one that everybody is in says less than the one of his own line.
func TestGroupsInCommonCount(t *testing.T) {
	var uses []learning.Use
	for i, user := range []string{"sam", "sue", "sid", "sal", "ann", "abe", "ada"} {
		u := use(i, user, "sun", "umbrella today", 0)
		u.Groups = []id.Group{"all"}
		if user[0] == 'a' {
			u.Tool, u.Groups = "rain", []id.Group{"all", "nurses"}
		}
		uses = append(uses, u)
	}
	l := learn(uses...)
	// How rain does, compared with sun, which more of all users need.
	rain := func(groups ...id.Group) float64 {
		scores := map[id.Tool]float64{}
		for _, m := range search(l, "new", groups, "umbrella today").Matches {
			scores[m.Tool] = m.Score
		}
		return scores["rain"] / scores["sun"]
	}
	if both, all := rain("all", "nurses"), rain("all"); both <= all {
		t.Errorf("rain does %v for a nurse, %v for others", both, all)
	}
	if both, line := rain("all", "nurses"), rain("nurses"); both >= line {
		t.Errorf("rain does %v for a nurse, %v if nothing counted but nurses", both, line)
	}
}

// What is much like a request is counted once, though it is the user's own, his group's and everybody's.
func TestSimilarRequestsAreCountedOnce(t *testing.T) {
	uses := []learning.Use{use(0, "ann", "rain", "umbrella today", 0), use(1, "abe", "rain", "umbrella today", 0), use(2, "sam", "rain", "umbrella today", 0)}
	if m := search(learn(uses...), "ann", []id.Group{"g-a"}, "umbrella today").Matches; m[0].Features.Similar != 3 {
		t.Errorf("%d past requests are said to be alike, want 3", m[0].Features.Similar)
	}
}

// However many uses a group has, so many count.
func TestUsesOfGroupsAreBounded(t *testing.T) {
	var uses []learning.Use
	for i := range 20_000 {
		uses = append(uses, use(i, fmt.Sprint("g", i), fmt.Sprint("tool-", i%100), fmt.Sprint("word", i), 0))
	}
	l := learn(uses...)
	if all, group := l.Common()[0].History.Len(), l.Own("new", []id.Group{"g-g"})[0].History.Len(); all != 20_000 || group != 16_384 {
		t.Errorf("%d of all and %d of the group are kept", all, group)
	}
}

// A use counts half after 30 days, and ages by whole days.
func TestUsesCountHalfAfterThirtyDays(t *testing.T) {
	share := func(age time.Duration) float64 {
		m := search(learn(use(0, "ann", "rain", "umbrella today", age), use(1, "bob", "sun", "umbrella today", 0)), "new", nil, "umbrella today").Matches
		for _, one := range m {
			if one.Tool == "rain" {
				return one.Features.HistoryShare
			}
		}
		return 0
	}
	// The share of a history of weight n is n/(n+back_off).
	backOff := discovery.DefaultWeights().Learned.BackOff
	want := share(0) * (.5 / (.5 + backOff)) / (1 / (1 + backOff))
	if got := share(30 * 24 * time.Hour); math.Abs(got-want) > 1e-9 || got == 0 {
		t.Errorf("after 30 days history makes %v of the score, want %v", got, want)
	}
	if a, b := share(0), share(11*time.Hour); a != b {
		t.Errorf("at noon what was used in the night makes %v, want %v", b, a)
	}
}

// Of one tool so many requests are kept, and so many in all.
func TestRequestsAreBounded(t *testing.T) {
	var uses []learning.Use
	for i := range 300 {
		uses = append(uses, use(i, fmt.Sprint("user-", i), "rain", fmt.Sprint("word", i), 0))
	}
	if kept := learn(uses...).Common()[0].History.Len(); kept != 256 {
		t.Errorf("%d requests of one tool are kept, want 256", kept)
	}
	for i := range 70_000 {
		uses = append(uses, use(1000+i, fmt.Sprint("user-", i%1499), fmt.Sprint("tool-", i%1400), fmt.Sprint("word", i), 0))
	}
	if kept := learn(uses...).Common()[0].History.Len(); kept != 65_536 {
		t.Errorf("%d requests are kept, want 65,536", kept)
	}
}

// Old habits fade.
func TestUsesAge(t *testing.T) {
	var uses []learning.Use
	for i, user := range []string{"ann", "bob", "cat"} {
		uses = append(uses, use(i, user, "sun", "umbrella today", 300*24*time.Hour), use(10+i, user, "rain", "umbrella today", 0))
	}
	if m := search(learn(uses...), "new", nil, "umbrella today").Matches; len(m) == 0 || m[0].Tool != "rain" {
		t.Errorf("%v", m)
	}
}
