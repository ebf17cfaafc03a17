package learning_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
)

// The bounds that docs/discovery.md states. A tool that one user alone used for a request comes, for others who ask
// alike, before another one only if it fits at least this share as well by its words.
const (
	strangersBound = 0.57
	fellowsBound   = 0.43 // for members of a group of his
)

// poisoned is a world in which some users use a tool again and again for a request that it is not for.
type poisoned struct {
	index   *discovery.Index
	text    string
	learned *learning.Learned
}

// poison makes a random world: tools with random words, some of them much used for requests of other words. Who poisons
// uses a random tool a thousand times for a request of the tools' words.
func poison(r *rand.Rand, poisoners ...string) poisoned {
	words := func(kind string, n int) (text string) {
		for range n {
			text += fmt.Sprintf("%s%c ", kind, 'a'+rune(r.IntN(26)))
		}
		return text
	}
	var tools []discovery.Tool
	var uses []learning.Use
	for i := range 12 {
		tool := id.Tool(fmt.Sprint("tool-", i))
		one := discovery.Tool{ID: tool, Name: fmt.Sprint("function", i), Descriptions: []string{words("kilo", 1+r.IntN(12))}}
		// A third are much used, a third were there and were not, a third came later.
		if r.IntN(3) == 0 {
			one.Created = now.Add(time.Hour)
		} else if r.IntN(2) == 0 {
			for user := range 40 {
				uses = append(uses, use(len(uses), fmt.Sprint("user-", user), string(tool), words("past", 4), 0))
			}
		}
		tools = append(tools, one)
	}
	p := poisoned{index: discovery.NewIndex(tools), text: words("kilo", 4)}
	target := string(tools[r.IntN(len(tools))].ID)
	for _, poisoner := range poisoners {
		for range 1000 / len(poisoners) {
			u := use(len(uses), poisoner, target, p.text, 0)
			u.Groups = []id.Group{"fellows"}
			uses = append(uses, u)
		}
	}
	p.learned = learn(uses...)
	return p
}

// first is how well the tool that somebody finds first fits by its words, as a share of the one that fits best.
func (p *poisoned) first(groups ...id.Group) float64 {
	r := discovery.NewRanker(p.index, discovery.DefaultWeights(), p.learned.Common()...).Over(p.learned.Own("victim", groups)...)
	found := r.Search(discovery.Query{Text: p.text, Limit: 20}).Matches
	if !slices.ContainsFunc(found, func(m discovery.Match) bool { return m.Features.Cold == 1 }) {
		return 1 // nothing fits by its words: whatever is found comes before nothing
	}
	return found[0].Features.Cold
}

func TestOneUserMovesOthersWithinTheStatedBound(t *testing.T) {
	const worlds = 50
	least := func(poisoners []string, groups ...id.Group) (worst float64, moved int) {
		worst = 1
		for seed := range uint64(worlds) {
			p := poison(rand.New(rand.NewPCG(seed, 1)), poisoners...)
			cold := p.first(groups...)
			if cold < 1 {
				moved++
			}
			worst = min(worst, cold)
		}
		return worst, moved
	}
	if worst, moved := least(nil); moved > 0 {
		t.Fatalf("without poison %d first finds are not what fits best, the worst %v: this test shows nothing", moved, worst)
	}
	strangers, moved := least([]string{"eve"})
	if strangers < strangersBound || moved == 0 {
		t.Errorf("strangers find first what fits %v as well, want at least %v; %d were moved", strangers, strangersBound, moved)
	}
	fellows, more := least([]string{"eve"}, "fellows")
	if fellows < fellowsBound || more < moved {
		t.Errorf("fellows find first what fits %v as well, want at least %v; %d were moved", fellows, fellowsBound, more)
	}
	// Two users who agree are no single one any more.
	if agreed, _ := least([]string{"eve", "mallory"}); agreed >= strangersBound {
		t.Errorf("two users who agree move others to what fits %v as well: the bound is not what holds them", agreed)
	}
	t.Logf("strangers %.2f (%d of %d worlds moved), fellows %.2f (%d)", strangers, moved, worlds, fellows, more)
}

// One user who asks for everything in the words of a request does not keep out what others taught about it.
func TestOneUserDoesNotDrownOthers(t *testing.T) {
	tools := []discovery.Tool{{ID: "rain", Name: "forecast"}, {ID: "sun", Name: "tanning"}}
	var uses []learning.Use
	for i, user := range []string{"ann", "bob", "cat"} {
		uses = append(uses, use(i, user, "rain", "umbrella today please now", 0))
	}
	for i := range 60 {
		tool := fmt.Sprint("other-", i)
		tools = append(tools, discovery.Tool{ID: id.Tool(tool), Name: tool})
		uses = append(uses, use(100+i, "eve", tool, "umbrella today", 0))
	}
	find := func(uses []learning.Use) []discovery.Match {
		r := discovery.NewRanker(discovery.NewIndex(tools), discovery.DefaultWeights(), learn(uses...).Common()...)
		return r.Search(discovery.Query{Text: "umbrella today", Limit: 3}).Matches
	}
	if m := find(uses[:3]); len(m) != 1 || m[0].Tool != "rain" {
		t.Fatalf("without eve: %v", m)
	}
	if m := find(uses); m[0].Tool != "rain" {
		t.Errorf("others find %v", m)
	}
}
