package finder_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/id"
)

func (d *desk) ids(set *catalog.Set) []id.Tool {
	var list []id.Tool
	for n := range set.EachSet() {
		list = append(list, d.world.Catalog.Tool(n).ID)
	}
	return list
}

// A small set is not narrowed, whatever is asked. Of a larger one, core tools, what the chat turned on and what fits stay;
// the rest is deferred, and the note counts it.
func TestNarrow(t *testing.T) {
	d := openDesk(t)
	d.tools[0].Core = true // mail
	d.chat.Tools = map[id.Tool]enable.ToolState{}
	d.avatar = []id.Tool{"rain", "pic", "f00", "f01", "f02", "f03"}
	d.chat.Tools["f17"] = enable.ToolState{Lasting: enable.ActionEnable, LastingSince: 1}
	view, facts := d.asks("ann")
	settings := finder.DefaultSettings()
	if n := view.Narrow(facts, &settings, "weather"); n != nil {
		t.Errorf("%v is narrowed to %v", d.ids(facts.Answer.Effective), d.ids(n.Tools))
	}
	settings.JITThreshold = 3
	n := view.Narrow(facts, &settings, "what will the weather be")
	if n == nil {
		t.Fatal("not narrowed")
	}
	if got := d.ids(n.Tools); !slices.Equal(got, []id.Tool{"mail", "f17", "rain"}) {
		t.Errorf("kept %v", got)
	}
	if got := d.ids(n.Deferred); !slices.Equal(got, []id.Tool{"f00", "f01", "f02", "f03", "pic"}) {
		t.Errorf("deferred %v", got)
	}
	if english, chinese := n.Note(); !strings.HasPrefix(english, "5 ") || !strings.Contains(chinese, "5") {
		t.Errorf("%q, %q", english, chinese)
	}
	if n.Answer(facts.Answer).Effective != n.Tools || facts.Answer.Effective == n.Tools {
		t.Error("the answer is not the narrowed one, or the one before has changed")
	}
	// What fits nothing keeps nothing of the rest.
	if got := d.ids(view.Narrow(facts, &settings, "I feel lonely tonight").Tools); !slices.Equal(got, []id.Tool{"mail", "f17"}) {
		t.Errorf("kept %v", got)
	}
}

// A name that is known is turned on; others are rejected each for its reason, with what to do next.
func TestEnableExplainsEachName(t *testing.T) {
	d := openDesk(t)
	d.add("boom", "explode", "Explodes", func(t *catalog.Tool) { t.Risk = catalog.RiskHigh })
	d.add("old", "telegraph", "Sends a telegram", func(t *catalog.Tool) { t.Status = catalog.StatusRetired })
	d.add("bob.diary", "diary", "Bob's diary", of("bob"))
	view, facts := d.asks("ann")
	names := []string{"weather", "mail", "explode", "telegraph", "send_mails", "diary", "bob.diary"}
	want := []finder.Rejection{"", "", finder.RejectedNeedsApproval, finder.RejectedWithheld, finder.RejectedUnknown, finder.RejectedUnknown, finder.RejectedUnknown}
	for i, named := range view.Enable(facts, names, enable.ActorModel) {
		if named.Name != names[i] || named.Rejection != want[i] {
			t.Errorf("%s: %q, want %q", names[i], named.Rejection, want[i])
		}
		if (named.Rejection == "") != (named.Next == "") || (named.Next == "") != (named.NextZH == "") || (named.Message == "") != (named.MessageZH == "") {
			t.Errorf("%+v", named)
		}
		if names[i] == "send_mails" && !slices.Contains(named.Nearest, "send_mail") {
			t.Errorf("near to send_mails: %v", named.Nearest)
		}
		if slices.Contains(named.Nearest, "diary") {
			t.Errorf("%s: bob's tool is told", names[i])
		}
	}
	for _, named := range view.Enable(facts, []string{"explode"}, enable.ActorPerson) {
		if named.Rejection != "" {
			t.Errorf("a person may not turn on %+v", named)
		}
	}
}

// Of one name, the user's own tool is meant.
func TestEnableMeansTheOwnTool(t *testing.T) {
	d := openDesk(t)
	d.add("ann.weather", "weather", "The weather, told by Ann's own station", of("ann"))
	view, facts := d.asks("ann")
	if named := view.Enable(facts, []string{"weather"}, enable.ActorModel)[0]; d.world.Catalog.Tool(named.Number).ID != "ann.weather" {
		t.Errorf("%+v", named)
	}
}
