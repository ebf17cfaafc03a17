package discovery

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// asked is a request and the tool that is right for it.
type asked struct {
	Text string  `json:"text"`
	Tool id.Tool `json:"tool"`
}

func lines[T any](t testing.TB, file string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		var one T
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func office(t testing.TB) []Tool { return lines[Tool](t, "tools.jsonl") }

// ranker has these tools and these past requests.
func ranker(tools []Tool, past ...Request) *Ranker {
	w := DefaultWeights()
	return NewRanker(NewIndex(tools), w, Level{NewHistory(past, &w.Learned, DefaultHistoryLimits()), 1})
}

func remembered(text string, tools ...id.Tool) Request {
	return Request{Features: FeaturesOf(text), Tools: tools, Weight: 1}
}

func (r *Ranker) find(text string) []Match { return r.Search(Query{Text: text, Limit: 20}).Matches }

func place(matches []Match, tool id.Tool) int {
	return slices.IndexFunc(matches, func(m Match) bool { return m.Tool == tool })
}

func found(matches []Match) []id.Tool {
	tools := make([]id.Tool, len(matches))
	for i, m := range matches {
		tools[i] = m.Tool
	}
	return tools
}

// The small office of testdata: each request finds its tool among the first three, most find it first.
func TestSearchFindsTheToolOfEachRequest(t *testing.T) {
	r := ranker(office(t))
	first, queries := 0, lines[asked](t, "queries.jsonl")
	for _, q := range queries {
		matches := r.find(q.Text)
		if at := place(matches, q.Tool); at < 0 || at > 2 {
			t.Errorf("%q: %s is at place %d of %v", q.Text, q.Tool, at, found(matches))
		} else if at == 0 {
			first++
		}
	}
	if first*10 < len(queries)*9 {
		t.Errorf("only %d of %d found their tool first", first, len(queries))
	}
}

func TestSearchOfNothing(t *testing.T) {
	r := ranker(office(t), remembered("what is the weather", "weather.current"))
	for _, text := range []string{"", " \n", "？！", "\xff\xfe", "the of and", "x", "zzzz yyyy"} {
		if result := r.Search(Query{Text: text, Limit: 5}); result.Fits {
			t.Errorf("%q fits %v", text, result.Matches)
		}
	}
	for _, limit := range []int{0, -1} {
		if result := r.Search(Query{Text: "weather", Limit: limit}); len(result.Matches) > 0 {
			t.Errorf("limit %d: %v", limit, result.Matches)
		}
	}
	if result := ranker(nil).Search(Query{Text: "weather", Limit: 5}); len(result.Matches) > 0 || result.Fits {
		t.Errorf("no tools: %v", result)
	}
}

// What may not be found is not found, whatever it matches, and what it would have been changes nothing else.
func TestCandidates(t *testing.T) {
	r := ranker(office(t), remembered("rain in Lisbon", "weather.current"), remembered("rain in Oslo", "weather.current"), remembered("rain alert", "weather.alerts"))
	only := r.Index().Candidates([]id.Tool{"weather.alerts", "files.read", "no.such.tool"})
	if only.Len() != 2 {
		t.Fatalf("%d candidates, want 2", only.Len())
	}
	for _, text := range []string{"rain in Lisbon", "get current weather", "read a file", "delete a file"} {
		for _, m := range r.Search(Query{Text: text, Candidates: only, Limit: 20}).Matches {
			if m.Tool != "weather.alerts" && m.Tool != "files.read" {
				t.Errorf("%q found %s", text, m.Tool)
			}
		}
	}
	other := NewIndex(office(t)).Candidates([]id.Tool{"weather.current"})
	if result := r.Search(Query{Text: "weather", Candidates: other, Limit: 5}); len(result.Matches) > 0 {
		t.Errorf("candidates of another index found %v", result.Matches)
	}
}

func TestReasons(t *testing.T) {
	r := ranker(office(t), remembered("please schedule a meeting with Ann", "calendar.create"), remembered("schedule a meeting with Eve", "calendar.create"))
	for _, test := range []struct {
		text, message, messageZH string
		tool                     id.Tool
	}{
		{"schedule a meeting with Bob", "also called “schedule a meeting”: matches “schedule”, “meeting”", "别名“schedule a meeting”匹配“schedule”、“meeting”", "calendar.create"},
		{"schedule a meeting with Bob", "2 similar requests needed it", "有2个类似的请求用过它", "calendar.create"},
		{"what does the forecast say", "keyword “forecast”: matches “forecast”", "关键词“forecast”匹配“forecast”", "weather.current"},
		{"recipients of a letter", "its parameter “recipient” matches “recipients”", "参数“recipient”匹配“recipients”", "mail.send"},
		{"Email", "its name matches “Email”", "名称匹配“Email”", "mail.send"},
		{"安排会议", "also called “安排会议”: matches “安排”, “排会”, “会议”", "别名“安排会议”匹配“安排”、“排会”、“会议”", "calendar.create"},
		{"things at the mailboxx", "parts of words are alike", "部分拼写相近", "mail.search"},
		{"finance", "its category or server matches “finance”", "类别或服务器匹配“finance”", "stocks.price"},
	} {
		matches := r.Search(Query{Text: test.text, Limit: 20, Reasons: true}).Matches
		at := place(matches, test.tool)
		if at < 0 {
			t.Errorf("%q does not find %s", test.text, test.tool)
			continue
		}
		if !slices.ContainsFunc(matches[at].Reasons, func(r Reason) bool { return r.Message == test.message && r.MessageZH == test.messageZH }) {
			t.Errorf("%q: no reason %q, %q in %+v", test.text, test.message, test.messageZH, matches[at].Reasons)
		}
	}
}
