package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// smallSet writes a set of three tools and six queries, and returns its directory.
func smallSet(t *testing.T, queries string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "small"), 0o755); err != nil {
		t.Fatal(err)
	}
	tools := `{"name": "maps/find_route", "server": "maps", "description": "The way from one place to another", "parameters": {"start": "where it begins"}}
{"name": "send_mail", "description": "Send a message", "parameters": {"recipient": "to whom"}}

{"name": "crop", "description": "Cut a picture"}
`
	for name, content := range map[string]string{"tools.jsonl": tools, "queries.jsonl": queries} {
		if err := os.WriteFile(filepath.Join(dir, "small", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const smallQueries = `{"query": "the route to the sea", "relevant": ["maps/find_route"]}
{"query": "mail this to Ann", "relevant": ["send_mail"]}
{"query": "cut this picture", "relevant": ["crop"]}
{"query": "which recipients", "relevant": ["send_mail"]}
{"query": "pictures", "relevant": ["crop"]}
{"query": "qqqq", "relevant": ["crop"]}
`

func discoveryRows(t *testing.T, args ...string) [][]any {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), append([]string{"discovery", "-o", "json"}, args...), nil, &out, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	var report discoveryReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report.Rows
}

// Five of six queries have words of their tools, so five of six find them, without use and with it.
func TestDiscoveryRanking(t *testing.T) {
	rows := discoveryRows(t, "--data", smallSet(t, smallQueries))
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3: %v", len(rows), rows)
	}
	for _, row := range rows {
		if row[0] != "small" || row[1] != 3.0 || row[2] != 6.0 || row[4] != "83.3" || row[5] != "83.3" {
			t.Errorf("%v", row)
		}
	}
}

func TestDiscoveryAbout(t *testing.T) {
	dir := smallSet(t, smallQueries)
	for about, first := range map[string]string{"learning": "at most 0 a tool", "splits": "", "threshold": "", "tokens": ""} {
		rows := discoveryRows(t, "--data", dir, "--about", about)
		if len(rows) == 0 || rows[0][0] != "small" || first != "" && rows[0][1] != first {
			t.Errorf("--about %s: %v", about, rows)
		}
	}
	said := map[any]bool{}
	for _, row := range discoveryRows(t, "--data", dir, "--about", "learning") {
		said[row[1]] = true
	}
	for _, what := range []string{"new tools, nobody has history", "new tools, there for 0 %", "the others, there for 0 %", "new tools, there for 50 %"} {
		if !said[what] {
			t.Errorf("--about learning does not tell of %q", what)
		}
	}
	row := discoveryRows(t, "--data", dir, "--about", "tokens")[0]
	if all, three := row[2].(float64), row[3].(float64); all < 60 || three < 60 || three > 400 {
		t.Errorf("tokens: %v", row)
	}
}

// Splits differ, each has all queries, and a seed always gives the same one.
func TestShuffled(t *testing.T) {
	queries := make([]dataQuery, 50)
	for i := range queries {
		queries[i].Query = fmt.Sprint(i)
	}
	order := func(queries []dataQuery) (texts []string) {
		for _, q := range queries {
			texts = append(texts, q.Query)
		}
		return texts
	}
	one, other := order(shuffled(queries, 1)), order(shuffled(queries, 2))
	if slices.Equal(one, other) || slices.Equal(one, order(queries)) || !slices.Equal(one, order(shuffled(queries, 1))) {
		t.Errorf("%v\n%v", one, other)
	}
	slices.Sort(one)
	slices.Sort(other)
	if !slices.Equal(one, other) || len(slices.Compact(one)) != len(queries) {
		t.Errorf("not the same queries: %v\n%v", one, other)
	}
}

func TestDiscoveryFaults(t *testing.T) {
	dir := smallSet(t, smallQueries)
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "--data: must be given"},
		{[]string{"--data", t.TempDir()}, "--data: no folder with queries*.jsonl"},
		{[]string{"--data", dir, "--about", "x"}, "--about: must be"},
		{[]string{"--data", dir, "--weight", "saturation"}, "--weight: must be name=number"},
		{[]string{"--data", dir, "--weight", "weight=1"}, "no weight is named"},
		{[]string{"--data", dir, "--weight", "repetition=2"}, "repetition: must be from 0 to 1, not 2"},
		{[]string{"--data", smallSet(t, `{"query": "x", "relevant": ["y"]}`)}, `query 1: no tool "y"`},
		{[]string{"--data", smallSet(t, `{"query": "x"}`)}, "query 1: has no relevant tool"},
		{[]string{"--data", smallSet(t, "\n{")}, "queries.jsonl:2: "},
	} {
		err := run(context.Background(), append([]string{"discovery"}, test.args...), nil, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.args, err, test.want)
		}
	}
}

func TestQuality(t *testing.T) {
	var all answerTally
	found := []discovery.Match{{Tool: "a"}, {Tool: "b"}, {Tool: "c"}, {Tool: "d"}}
	for _, relevant := range [][]id.Tool{{"a"}, {"b"}, {"d"}, {"x"}} {
		all.add(&dataQuery{Relevant: relevant}, found, 0)
	}
	q := all.quality()
	if q.Top1 != 25 || q.Top3 != 50 || q.Top5 != 75 {
		t.Errorf("%+v", q)
	}
	if want := 100 * (1 + 0.63093 + 0.43068) / 4; q.NDCG < want-0.01 || q.NDCG > want+0.01 {
		t.Errorf("nDCG %v, want %v", q.NDCG, want)
	}
}
