package pin_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/pin"
)

func functions(t *rapid.T, label string) []catalog.Function {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) catalog.Function {
		return catalog.Function{Name: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name"), Description: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "description")}
	}), 0, 5, func(f catalog.Function) string { return f.Name }).Draw(t, label)
}

// After any history of what a server lists and of what is pinned, exactly what both say alike is usable, what is approved
// is what was listed, and there is nothing left to write.
func TestOnlyWhatIsPinnedAndListedAlikeIsUsable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		toolType := catalog.ToolType{Source: catalog.SourceExternalMCP}
		var listed []catalog.Function
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "repin") {
				toolType.Functions = functions(t, "pinned")
			}
			listed = functions(t, "listed")
			put, drop := pin.Compare(&toolType, listed, time.Time{})
			for _, o := range put {
				drop = append(drop, o.Name)
			}
			toolType.Observations = slices.DeleteFunc(slices.Clone(toolType.Observations), func(o catalog.Observation) bool { return slices.Contains(drop, o.Name) })
			toolType.Observations = append(toolType.Observations, put...)
		}
		if put, drop := pin.Compare(&toolType, listed, time.Time{}); len(put)+len(drop) > 0 {
			t.Fatalf("compared again: put %v, drop %v", put, drop)
		}
		usable, quarantined := toolType.Usable()
		alike := 0
		for _, f := range listed {
			p := toolType.Pinned(f.Name)
			if isAlike := p != nil && p.Description == f.Description; isAlike != slices.ContainsFunc(usable, func(u catalog.Function) bool { return u.Name == f.Name }) {
				t.Fatalf("%s: pinned %v, listed %v, usable %v", f.Name, toolType.Functions, listed, usable)
			} else if isAlike {
				alike++
			}
		}
		if len(usable) != alike || alike+len(quarantined) != len(listed) {
			t.Fatalf("pinned %v, listed %v: usable %v, in quarantine %v", toolType.Functions, listed, usable, quarantined)
		}
		var approvals []pin.Approval
		for _, o := range toolType.Observations {
			a := pin.Approval{Name: o.Name}
			if o.Function != nil {
				a.Digest = o.Function.Digest()
			}
			approvals = append(approvals, a)
		}
		approved, outdated := pin.Approve(&toolType, approvals)
		if len(outdated) > 0 || len(approved) != len(listed) {
			t.Fatalf("approved %v of %v, outdated %v", approved, listed, outdated)
		}
		for _, f := range listed {
			if !slices.ContainsFunc(approved, func(a catalog.Function) bool { return a.Digest() == f.Digest() }) {
				t.Fatalf("%v is not among %v", f, approved)
			}
		}
	})
}

func TestApprovingKeepsTheOperatorsJudgement(t *testing.T) {
	toolType := catalog.ToolType{Source: catalog.SourceExternalMCP, Functions: []catalog.Function{{Name: "a", Declared: catalog.RiskLow}}}
	changed := catalog.Function{Name: "a", Description: "new"}
	toolType.Observations = []catalog.Observation{{Name: "a", Function: &changed}}
	got, outdated := pin.Approve(&toolType, []pin.Approval{{Name: "a", Digest: changed.Digest()}})
	if len(outdated) > 0 || len(got) != 1 || got[0].Declared != catalog.RiskLow || got[0].Description != "new" {
		t.Errorf("%+v, %v", got, outdated)
	}
	if toolType.Functions[0].Description != "" {
		t.Error("what is stored was changed on the way")
	}
	if _, outdated := pin.Approve(&toolType, []pin.Approval{{Name: "a", Digest: "another"}, {Name: "gone"}}); !slices.Equal(outdated, []string{"a", "gone"}) {
		t.Errorf("outdated are %v", outdated)
	}
}
