package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func TestFaultsOfAFileTellTheirPlace(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ { // ten to the tenth
		item := "*" + string(c-1) + ", "
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat(item, 10) + "]\n"
	}
	for text, want := range map[string]string{
		"tools:\n  - {tool_id: a, core: maybe}":               `2:24: tools[0].core: expected bool, got "maybe"`,
		"tools:\n  - tool_id: a\n    toool: 1":                `3:5: tools[0]: unknown field "toool", expected one of`,
		"# x\n---\ntools: []\n---\ntools: {}":                 `5:8: tools: expected sequence, got mapping`,
		"tools:\n  - tool_id: a\n    tool_id: b":              `3:5: tools[0].tool_id: occurs twice`,
		"tools: []\ntools: []":                                `2:1: tools: occurs twice`,
		"tools:\n  - {a: 1}\n  b: 2":                          `2: did not find expected '-' indicator`,
		"tools: []\n? users":                                  `2:3: users: has no value`,
		"tools: *x":                                           `1:8: unknown anchor 'x' referenced`,
		"# x\n---\na: b\nc:\n  - *x":                          `5:5: unknown anchor 'x' referenced`,
		"tools: &x {a: *x}":                                   `1:15: tools.a: aliases are not supported`,
		"tools: &x [*x]":                                      `1:12: tools[0]: aliases are not supported: write out what *x stands for`,
		"tools: [{config: &x {a: 1, b: {<<: *x}}}]":           `1:36: tools[0].config.b.<<: aliases are not supported`,
		bomb + "tools: [{config: {x: *j}}]":                   `2:8: b[0]: aliases are not supported`,
		"tools:\n  - {title: \xff}":                           `2:13: not UTF-8`,
		"tools:\n  - {title: \x00}":                           `2:13: a NUL character`,
		"tools:\n  - {title: é\x1b}":                          `2:14: the character U+001B: write it as \u001B in double quotes`,
		"tools:\n  - {title: \u2028}":                         `2:13: the character U+2028: write it as \u2028 in double quotes`,
		"tools: []\r\r\ntools: []":                            `1:10: a carriage return without a line feed`,
		"\xff\xfet\x00o\x00":                                  `1:1: not UTF-8`,
		"{\"tools\": [\n{\"core\": 4}]}":                      `2:10: tools[0].core: invalid value for bool field core: 4`,
		"{\"tools\": [],\n\"tools\": []}":                     `2:1: duplicate field "tools"`,
		strings.Repeat("[", 20000):                            `1: exceeded max depth of 10000`,
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000): `1:1: syntax error: unexpected token [`,
	} {
		_, err := readManifests([]string{"-"}, strings.NewReader(text))
		var refused *manifestError
		if !errors.As(err, &refused) || !strings.HasPrefix(refused.faults[0], "standard input:"+want) {
			t.Errorf("%.80q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestAFileMayHoldSeveralDocuments(t *testing.T) {
	all, err := readManifests([]string{"-"}, strings.NewReader(`%YAML 1.1
# The tools.
---
tools: [{tool_id: a, prompt: "x
 --- y"}]
--- # nothing
---
tools:
  - {tool_id: b}
...
# The users.
---
{users: [{user_id: 7}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &toolgrantv1.Manifest{Tools: []*toolgrantv1.Tool{{ToolId: "a", Prompt: "x --- y"}, {ToolId: "b"}},
		Users: []*toolgrantv1.User{{UserId: "7"}}}
	if got := all.joined(); !proto.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := all.position("tools[1].tool_id"); got != "standard input:9:15: tools[0].tool_id" {
		t.Errorf("got %s", got)
	}
}

func TestATooLargeFileIsRefused(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("tools: [] #"), endlessly('x'))
	_, err := readManifests([]string{"-"}, endless)
	if want := "standard input:1:1: larger than 64 MiB"; exitStatus(err) != exitRefused || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// endlessly is a reader of one byte, over and over.
type endlessly byte

func (e endlessly) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestOnlyTheFirstOfManyFaultsAreShown(t *testing.T) {
	_, err := readManifests([]string{"-"}, strings.NewReader("tools: &x [*x"+strings.Repeat(", *x", maxFaults+1)+"]"))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxFaults+2 || lines[len(lines)-1] != "and 2 more" {
		t.Errorf("got %v", err)
	}
}

// What is printed reads as what it was, whatever the texts hold.
func TestManifestsRoundTrip(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("a1e-:#'\"\\{}[]&*!|>%@` \t\r\n\u0000\u0007\u0085\u2028\ufeff😀")), 0, 12, -1),
		rapid.SampledFrom([]string{"null", "~", "yes", "0x1F", "1_000", "1e3", ".inf", "2026-01-01", "<<", "=", "---", "...", "!!str", "-"}))
	rapid.Check(t, func(t *rapid.T) {
		config, err := structpb.NewStruct(map[string]any{text.Draw(t, "key"): []any{text.Draw(t, "item"), rapid.Float64Range(-1e300, 1e300).Draw(t, "number")}})
		if err != nil {
			t.Skip(err) // not UTF-8
		}
		want := &toolgrantv1.Manifest{Tools: []*toolgrantv1.Tool{{ToolId: "x", Title: text.Draw(t, "title"), Config: config,
			Keywords: []string{text.Draw(t, "keyword")}, Localized: map[string]*toolgrantv1.LocalizedText{text.Draw(t, "language"): {Title: "x"}}}}}
		for _, format := range []format{formatYAML, formatJSON} {
			var out strings.Builder
			if err := (&cli{output: format}).print(&out, nil, want); err != nil {
				t.Skip(err)
			}
			got, err := readManifests([]string{"-"}, strings.NewReader(out.String()))
			if err != nil || !proto.Equal(got.joined(), want) {
				t.Fatalf("%s\ngot  %v %v\nwant %v", out.String(), got, err, want)
			}
		}
	})
}

func FuzzReadManifest(f *testing.F) {
	for _, text := range []string{
		"tools: [{tool_id: a, config: {depth: 1}}]", "tools: &x [*x]", "a: &a {b: *a}\nc: {<<: *a}", "{\"tools\": [{\"core\": 1}]}",
		"users: [{memberships: [{start_time: 2026-01-01T00:00:00Z}]}]", "%YAML 1.1\n---\ntools: |\n x\n...\n---\n", "? [a]\n: b", "tools: \r\n - !!binary x",
		"\xef\xbb\xbftools: []", "tools:\n- tool_id: 1\n  prompt: >+\n\n   x\n", "a: \xff", "a: \x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readManifests([]string{"-"}, strings.NewReader(text)) // it must return
		if refused := (*manifestError)(nil); errors.As(err, &refused) {
			for _, fault := range refused.faults {
				if !strings.HasPrefix(fault, "standard input:") {
					t.Errorf("%q: a fault without a place: %s", text, fault)
				}
			}
		}
		joined := all.joined()
		for _, path := range []string{"tools[0].tool_id", "tools[1].config.a[0]", "users[0].memberships[0].group_id"} {
			_ = all.position(path)
		}
		if _, err := proto.Marshal(joined); err != nil {
			t.Errorf("%q was accepted, but cannot be sent: %v", text, err)
		}
	})
}
