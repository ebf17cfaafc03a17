package finder_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// desk is a small office: each tool is on every phone, unless it is a user's own.
type desk struct {
	t     *testing.T
	tools []catalog.Tool
	chat  enable.State
	// avatar is what the default Avatar turns on.
	avatar []id.Tool
	shelf  *finder.Shelf
	world  *effective.World
	// score is the share of a tool's recent calls that went well; health says who is put aside.
	score  func(health.Subject) float64
	health call.Health
}

func openDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, shelf: finder.NewShelf(discovery.DefaultWeights(), nil)}
	d.add("mail", "send_mail", "Send a message to somebody")
	d.add("rain", "weather", "Tell what the weather will be in a town")
	d.add("pic", "crop_picture", "Cut a picture to a size")
	for i, subject := range strings.Fields("stamps bicycles sonnets violins tomatoes comets bridges sheep carpets candles lanterns marbles kettles ladders mirrors onions pillows quilts") {
		d.add(fmt.Sprintf("f%02d", i), "keep_"+subject, "Keeps a collection of "+subject)
	}
	return d
}

// add adds a tool, changed as told.
func (d *desk) add(tool, name, description string, change ...func(*catalog.Tool)) {
	one := catalog.Tool{ID: id.Tool(tool), Type: "plain", Name: name, Description: description, Status: catalog.StatusActive, Risk: catalog.RiskLow}
	for _, do := range change {
		do(&one)
	}
	d.tools = append(d.tools, one)
	d.world = nil
}

func of(user id.User) func(*catalog.Tool) { return func(t *catalog.Tool) { t.Owner = user } }

// asks makes the view and the facts of a user.
func (d *desk) asks(user id.User) (finder.View, *finder.Facts) {
	d.t.Helper()
	if d.world == nil {
		phone := availability.DeviceType{ID: "phone"}
		for _, t := range d.tools {
			if t.Owner == "" {
				phone.Tools = append(phone.Tools, t.ID)
			}
		}
		world, err := effective.Compile(effective.Definitions{ToolTypes: []catalog.ToolType{{ID: "plain", Source: catalog.SourceNative}}, Tools: slices.Clone(d.tools),
			DeviceTypes: []availability.DeviceType{phone}, Avatars: []enable.Avatar{{ID: "usual", Tools: d.avatar}}, DefaultAvatars: []enable.DefaultAvatar{{Avatar: "usual"}}})
		if err != nil {
			d.t.Fatal(err)
		}
		d.world = world
	}
	question := effective.Question{User: &availability.User{ID: user, Devices: []availability.Device{{ID: "p", Type: "phone"}}},
		Surface: availability.Surface{Device: "p"}, Chat: d.chat, Turn: 1, Now: noon}
	view, err := d.shelf.Of(d.t.Context(), d.world, user)
	if err != nil {
		d.t.Fatal(err)
	}
	return view, &finder.Facts{World: d.world, Score: d.score, Facts: &call.Facts{Index: call.Compile(d.world.Catalog, nil), Answer: d.world.Resolve(question),
		User: user, Now: noon, Health: d.health}}
}

func (d *desk) find(user id.User, text string, change ...func(*finder.Request)) finder.Result {
	d.t.Helper()
	settings := finder.DefaultSettings()
	request := finder.Request{Text: text, TopK: 3}
	for _, do := range change {
		do(&request)
	}
	view, facts := d.asks(user)
	return view.Find(facts, &settings, &request)
}

func tools(r finder.Result) []id.Tool {
	var found []id.Tool
	for _, m := range r.Matches {
		found = append(found, m.Tool)
	}
	return found
}

func (d *desk) first(user id.User, text string) id.Tool {
	d.t.Helper()
	if found := tools(d.find(user, text)); len(found) > 0 {
		return found[0]
	}
	return ""
}

func TestFindsWhatIsAskedForAndSaysWhy(t *testing.T) {
	d := openDesk(t)
	r := d.find("ann", "what will the weather be")
	if !r.Fits || r.All || r.Candidates != 21 || r.Matches[0].Tool != "rain" || len(r.Matches[0].Reasons) == 0 || r.Matches[0].Own {
		t.Errorf("%+v", r)
	}
	if english, chinese := r.Suggestion(); english != "" || chinese != "" {
		t.Errorf("something fits, and the suggestion is %q, %q", english, chinese)
	}
}

func TestNothingFits(t *testing.T) {
	d := openDesk(t)
	r := d.find("ann", "I feel lonely tonight")
	if r.Fits || len(r.Matches) > 0 || len(r.Found) > 0 {
		t.Errorf("%+v", r)
	}
	if english, chinese := r.Suggestion(); english == "" || chinese == "" {
		t.Error("nothing is suggested")
	}
}

// Few candidates are all told, those that were found first.
func TestFewCandidatesAreAllTold(t *testing.T) {
	d := openDesk(t)
	d.tools, d.world = d.tools[:5], nil
	for text, found := range map[string][]id.Tool{"crop a picture": {"pic"}, "qqqq": nil} {
		r := d.find("ann", text)
		if !r.All || len(r.Matches) != 5 || !slices.Equal(r.Found, found) || r.Fits != (found != nil) {
			t.Errorf("%q: %v, found %v", text, tools(r), r.Found)
		}
	}
	if got := tools(d.find("ann", "crop a picture"))[0]; got != "pic" {
		t.Errorf("%s is first", got)
	}
}

// Nobody finds another user's tools, by whatever words, nor do they change what he finds.
func TestOthersToolsAreNotThere(t *testing.T) {
	d := openDesk(t)
	texts := []string{"zanzibar diary", "ann.diary", "weather", "send a message about the diary"}
	before := make([]finder.Result, len(texts))
	for i, text := range texts {
		before[i] = d.find("bob", text)
	}
	d.add("ann.diary", "zanzibar_diary", "Ann's diary of Zanzibar and of the weather", of("ann"))
	for i, text := range texts {
		after := d.find("bob", text)
		if !slices.Equal(tools(before[i]), tools(after)) || before[i].Candidates != after.Candidates {
			t.Errorf("%q: %v, with ann's tool %v", text, tools(before[i]), tools(after))
		}
		for j, m := range after.Matches {
			if m.Score != before[i].Matches[j].Score {
				t.Errorf("%q: %s scores %v, with ann's tool %v", text, m.Tool, before[i].Matches[j].Score, m.Score)
			}
		}
	}
	if r := d.find("ann", "zanzibar diary"); len(r.Matches) == 0 || r.Matches[0].Tool != "ann.diary" || !r.Matches[0].Own || r.Candidates != 22 {
		t.Errorf("ann finds %+v", r)
	}
}

func TestOwnToolBeatsASharedOneOfItsName(t *testing.T) {
	d := openDesk(t)
	d.add("ann.weather", "weather", "The weather, told by Ann's own station", of("ann"))
	if found := tools(d.find("ann", "weather")); !slices.Contains(found, "ann.weather") || slices.Contains(found, "rain") {
		t.Errorf("ann finds %v", found)
	}
	if got := d.first("bob", "weather"); got != "rain" {
		t.Errorf("bob finds %s", got)
	}
}

// Of two tools that fit alike, risk, cost and failures decide.
func TestWhatIsWorseStandsBehind(t *testing.T) {
	for name, worse := range map[string]func(*catalog.Tool){
		"risk": func(t *catalog.Tool) { t.Risk = catalog.RiskHigh }, "some risk": func(t *catalog.Tool) { t.Risk = catalog.RiskMedium },
		"cost": func(t *catalog.Tool) { t.Capability.CostClass = catalog.CostHigh }, "failures": func(*catalog.Tool) {}, "put aside": func(*catalog.Tool) {},
	} {
		d := openDesk(t)
		d.add("a", "polish_one", "Polishes telescopes", worse) // of equals, it would stand first
		d.add("b", "polish_two", "Polishes telescopes")
		if name == "failures" {
			d.score = func(s health.Subject) float64 {
				return map[id.Tool]float64{"a": 0}[s.Tool] + map[bool]float64{true: 1}[s.Tool != "a"]
			}
		}
		if name == "put aside" {
			d.health = func(s call.Subject) call.Condition {
				if s.Tool == "a" {
					return call.Condition{State: call.Open}
				}
				return call.Condition{}
			}
		}
		if got := d.first("ann", "polish telescopes"); got != "b" {
			t.Errorf("%s: %s is first", name, got)
		}
	}
}

func TestRelatedToolsComeAlong(t *testing.T) {
	d := openDesk(t)
	d.add("film", "develop_film", "Develops films", func(t *catalog.Tool) { t.Related = []id.Tool{"pic", "gone", "film", "ann.album"} })
	d.add("ann.album", "album", "Pastes in an album", of("ann"))
	related := func(user id.User) []id.Tool {
		var list []id.Tool
		for _, one := range d.find(user, "develop films", func(r *finder.Request) { r.TopK = 1 }).Related {
			list = append(list, d.world.Catalog.Tool(one.Number).ID)
		}
		return list
	}
	if got := related("ann"); !slices.Equal(got, []id.Tool{"pic", "ann.album"}) {
		t.Errorf("ann: %v", got)
	}
	if got := related("bob"); !slices.Equal(got, []id.Tool{"pic"}) {
		t.Errorf("bob: %v", got)
	}
}

// A written tool is found by the next search, in other words and no more in the old ones; the view from before still
// finds what it found.
func TestChangesAreFound(t *testing.T) {
	d := openDesk(t)
	old, facts := d.asks("ann")
	d.tools[0].Description, d.tools[0].Name, d.world = "Plays the xylophone", "xylophone", nil
	if got := d.first("ann", "play the xylophone"); got != "mail" {
		t.Errorf("found %s", got)
	}
	if got := d.first("ann", "send a message to somebody"); got == "mail" {
		t.Error("found by what it was")
	}
	settings := finder.DefaultSettings()
	if r := old.Find(facts, &settings, &finder.Request{Text: "send a message to somebody", TopK: 1}); len(r.Matches) == 0 || r.Matches[0].Tool != "mail" {
		t.Errorf("the view from before finds %v", tools(r))
	}
	d.tools, d.world = d.tools[1:], nil
	if got := d.first("ann", "play the xylophone"); got == "mail" {
		t.Error("what was deleted is found")
	}
}

func TestFastPath(t *testing.T) {
	task := func(t *catalog.Tool) { t.Capability.DeterministicFor = []string{"ring the bell"} }
	d := openDesk(t)
	d.add("bell", "ring_bell", "Rings the bell of the house", task, func(t *catalog.Tool) { t.Core = true })
	if r := d.find("ann", "please ring the bell"); r.FastPath == nil || r.FastPath.Task != "ring the bell" {
		t.Errorf("%+v", r)
	}
	for name, change := range map[string]func(*catalog.Tool){"not given": func(t *catalog.Tool) { t.Core = false }, "risk": func(t *catalog.Tool) { t.Risk = catalog.RiskMedium }} {
		d := openDesk(t)
		d.add("bell", "ring_bell", "Rings the bell of the house", task, func(t *catalog.Tool) { t.Core = true }, change)
		if r := d.find("ann", "please ring the bell"); r.FastPath != nil {
			t.Errorf("%s: %+v", name, r.FastPath)
		}
	}
	if r := d.find("ann", "a bell for the house"); r.FastPath != nil {
		t.Errorf("another task: %+v", r.FastPath)
	}
}
