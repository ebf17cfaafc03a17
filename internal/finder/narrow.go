package finder

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Narrowed is an effective set, narrowed for a query. Both sets are ordered as answers are: core tools first, then by
// id. So what stays the same from query to query stands where it stood.
type Narrowed struct {
	Tools    *catalog.Set // what the model is told of in full
	Deferred *catalog.Set // the rest, which it may call all the same
	Best     []id.Tool    // what fits the query, best first
}

// Narrow keeps of a large effective set the core tools, those that the chat itself turned on, and the best for a query.
// It returns nil if there is nothing to narrow.
func (v *View) Narrow(f *Facts, s *Settings, query string) *Narrowed {
	a := f.Answer
	if int(a.Effective.Count()) <= s.JITThreshold {
		return nil
	}
	kept := v.world.Catalog.Core().Union(a.Enable.ByChat)
	kept.InPlaceIntersection(a.Effective)
	best := v.best(f, s, query)
	// Shared and private tools are chosen apart, but their scores can be compared.
	slices.SortStableFunc(best, func(a, b Match) int { return -cmp.Compare(a.Score, b.Score) })
	fitting := make([]id.Tool, len(best))
	for i, m := range best {
		kept.Set(m.Number)
		fitting[i] = m.Tool
	}
	return &Narrowed{Tools: kept, Deferred: a.Effective.Difference(kept), Best: fitting}
}

// best are the effective tools that fit a query best, of shared ones and of the user's own apart.
func (v *View) best(f *Facts, s *Settings, query string) []Match {
	rest := f.Answer.Effective.Difference(v.world.Catalog.Core())
	rest.InPlaceDifference(f.Answer.Enable.ByChat)
	top := func(found []Match, limit int) []Match {
		slices.SortStableFunc(found, func(a, b Match) int {
			switch {
			case a.Score > b.Score:
				return -1
			case a.Score < b.Score:
				return 1
			}
			return 0
		})
		found = slices.DeleteFunc(found, func(m Match) bool { return !v.fits(m) })
		return found[:min(len(found), limit)]
	}
	found := top(v.search(f, v.shelf, v.sharedCandidates(rest), query, 2*s.TopKSystem+5), s.TopKSystem)
	if v.own != nil {
		found = append(found, top(v.search(f, v.own, v.ownCandidates(rest), query, 2*s.TopKUser+5), s.TopKUser)...)
	}
	return found
}

// Answer is an answer that gives the narrowed set, and is the same otherwise.
func (n *Narrowed) Answer(a *effective.Answer) *effective.Answer {
	narrowed := *a
	narrowed.Effective = n.Tools
	return &narrowed
}

// Note tells a model that more exists, in English and in Chinese; nothing if nothing was left out.
func (n *Narrowed) Note() (english, chinese string) {
	left := n.Deferred.Count()
	if left == 0 {
		return "", ""
	}
	return fmt.Sprintf("%d more tools are on in this conversation but not described here. If none of the tools above fits, search for what you need in words with search_tools; what it finds you may call, or turn on with enable_tools first if it is off.", left),
		fmt.Sprintf("此对话中还有%d个已启用的工具未在此说明。如果以上工具都不合适，请用 search_tools 以文字描述所需功能进行搜索；搜索到的工具可以直接调用，未启用的请先用 enable_tools 启用。", left)
}
