package effectivetest

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// Answer is what a question is answered with. Lists stand in the order of the answer.
type Answer struct {
	Refused   string     `yaml:"refused,omitempty"` // the reason of the error; then nothing else is told
	Effective []string   `yaml:"effective,flow"`
	Withheld  []Withheld `yaml:"withheld,omitempty"`
	// ExpiresAfterTurns holds the effective tools that a TTL keeps on.
	ExpiresAfterTurns map[string]int32 `yaml:"expires_after_turns,omitempty"`

	// These are compared only if they are given.
	Avatars   *[]string `yaml:"avatars,omitempty,flow"`
	Available *[]string `yaml:"available,omitempty,flow"`
	Steps     []string  `yaml:"steps,omitempty"` // see Step
}

// Withheld is a tool that is enabled, but not effective.
type Withheld struct {
	Tool                string   `yaml:"tool"`
	Reason              string   `yaml:"reason"`
	MissingCapabilities []string `yaml:"missing_capabilities,omitempty,flow"`
	Groups              []string `yaml:"groups,omitempty,flow"`
	GrantingGroups      []string `yaml:"granting_groups,omitempty,flow"`
	Surfaces            []string `yaml:"surfaces,omitempty,flow"` // devices, or "web"
	ShadowedBy          string   `yaml:"shadowed_by,omitempty"`
	// Messages are compared only if they are given, but never empty.
	Message   string `yaml:"message,omitempty"`
	MessageZH string `yaml:"message_zh,omitempty"`
}

// Step words a step of an explanation: the rule, its outcome and the rows it rested on.
func Step(rule, outcome string, rows ...string) string {
	step := rule + " " + outcome
	for _, row := range rows {
		step += " " + row
	}
	return step
}

// Run asks every question of a folder. open makes what answers those of one file.
func Run(t *testing.T, folder string, open func(*testing.T, *File) func(*testing.T, *Question) Answer) {
	files, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(file.Concept, func(t *testing.T) {
			ask := open(t, &file)
			for _, q := range file.Questions {
				t.Run(q.Name, func(t *testing.T) { q.Want.check(t, ask(t, &q)) })
			}
		})
	}
}

// check compares an answer with the wanted one.
func (want Answer) check(t *testing.T, got Answer) {
	t.Helper()
	for i := range got.Withheld {
		w := &got.Withheld[i]
		if w.Message == "" || w.MessageZH == "" {
			t.Errorf("%s: a message is missing", w.Tool)
		}
		if i >= len(want.Withheld) || want.Withheld[i].Message == "" {
			w.Message = ""
		}
		if i >= len(want.Withheld) || want.Withheld[i].MessageZH == "" {
			w.MessageZH = ""
		}
	}
	if want.Avatars == nil {
		got.Avatars = nil
	}
	if want.Available == nil {
		got.Available = nil
	}
	if g, w := got.text(t), want.text(t); g != w {
		t.Errorf("got:\n%s\nwant:\n%s", g, w)
	}
}

// text is the answer as a case file would say it.
func (a Answer) text(t *testing.T) string {
	t.Helper()
	data, err := yaml.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
