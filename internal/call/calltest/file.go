// Package calltest reads the cases of calls: YAML files that hold a small world and questions about calls in it, with
// the answers that the rules demand. docs/semantics.md says how to add a case.
package calltest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
)

// File is a case file.
type File struct {
	Concept   string     `yaml:"-"`     // the file's name
	World     yaml.Node  `yaml:"world"` // in the shape of a manifest
	Questions []Question `yaml:"questions"`
	// Unstorable are tools that no server stores: they are for questions that say so, too.
	Unstorable []string `yaml:"unstorable"`
}

// Question is one call that is asked about, and the answer that is wanted.
type Question struct {
	Name                       string `yaml:"name"`
	effectivetest.Conversation `yaml:",inline"`

	Call       Call       `yaml:"call"`
	Approvals  []Approval `yaml:"approvals"`
	Down       []Subject  `yaml:"down"`       // their breakers are open
	Probing    []Subject  `yaml:"probing"`    // their breakers are half open
	Deployment []string   `yaml:"deployment"` // what the deployment allows, named as preconditions are
	Synonyms   []string   `yaml:"synonyms"`   // of native; default: call.DefaultSynonyms
	Unstorable bool       `yaml:"unstorable"` // about what no server stores, or has asked
	Want       Answer     `yaml:",inline"`
}

// Call is the call; its id is call-1, its chat's chat.
type Call struct {
	ID                   string         `yaml:"id"` // default: call-1
	Function             string         `yaml:"function"`
	Source               string         `yaml:"source"`
	Arguments            map[string]any `yaml:"arguments"` // none: not told
	ModelCapabilities    []string       `yaml:"model_capabilities"`
	ProviderCapabilities []string       `yaml:"provider_capabilities"`
	Provider             string         `yaml:"provider"`
}

// Approval is an approval that exists, as Made makes it. What is left out is that of the call.
type Approval struct {
	ID       string    `yaml:"id"`
	Call     string    `yaml:"call"`
	Chat     string    `yaml:"chat"`
	User     string    `yaml:"user"`
	Tool     string    `yaml:"tool"`
	Function string    `yaml:"function"`
	State    string    `yaml:"state"`
	Scope    string    `yaml:"scope"`
	Expire   time.Time `yaml:"expire"`
	// Arguments default to those of the call.
	Arguments map[string]any `yaml:"arguments"`
}

// Subject is a tool or a server.
type Subject struct {
	Tool   string        `yaml:"tool"`
	Server string        `yaml:"server"`
	For    time.Duration `yaml:"for"` // down: until a probe may pass
}

// Answer is what a question is answered with.
type Answer struct {
	Decision string   `yaml:"decision"`
	Reason   string   `yaml:"reason,omitempty"`
	Tool     string   `yaml:"tool,omitempty"`
	Next     Next     `yaml:"next,omitempty,flow"`
	Fallback []string `yaml:"fallback,omitempty,flow"`
	Approval string   `yaml:"approval,omitempty"`
	Withheld string   `yaml:"withheld,omitempty"` // the reason
	Probes   []string `yaml:"probes,omitempty,flow"`

	// These are compared only if they are given; but a refusal has messages, and nothing else has.
	Function  string   `yaml:"function,omitempty"`
	Risk      string   `yaml:"risk,omitempty"`
	Binding   *Binding `yaml:"binding,omitempty,flow"`
	Trace     []string `yaml:"trace,omitempty"`
	Message   string   `yaml:"message,omitempty"`
	MessageZH string   `yaml:"message_zh,omitempty"`
}

// Next is the next step.
type Next struct {
	Enable     *Enable  `yaml:"enable,omitempty,flow"`
	Approve    bool     `yaml:"approve,omitempty"`
	RetryAfter string   `yaml:"retry_after,omitempty"`
	Fallback   []string `yaml:"fallback,omitempty,flow"`
	Faults     []string `yaml:"faults,omitempty"`       // path: description
	Sources    []string `yaml:"sources,omitempty,flow"` // source/tool/unique name
}

// Enable is a request to enable a tool.
type Enable struct {
	Chat      string `yaml:"chat"`
	RequestID string `yaml:"request_id"`
	Turn      *int32 `yaml:"turn,omitempty"`
	Tool      string `yaml:"tool"`
}

// Binding is how a call is made.
type Binding struct {
	ToolClass string `yaml:"tool_class,omitempty"` // native
	Server    string `yaml:"server,omitempty"`
	Function  string `yaml:"function,omitempty"`
	Endpoint  string `yaml:"endpoint,omitempty"`
	Config    string `yaml:"config,omitempty"` // JSON
}

// Load reads the case files of a folder.
func Load(folder string) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no case files in %s", folder)
	}
	files := make([]File, len(paths))
	for i, path := range paths {
		if err := files[i].load(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

func (f *File) load(path string) error {
	f.Concept = strings.TrimSuffix(filepath.Base(path), ".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(f); err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range f.Questions {
		q := &f.Questions[i]
		if q.Name == "" || names[q.Name] {
			return fmt.Errorf("question %d has no name of its own", i+1)
		}
		names[q.Name] = true
		q.Complete()
		if q.Call.ID == "" {
			q.Call.ID = "call-1"
		}
		if q.Want.Decision == "" {
			return errors.New(q.Name + ": no decision")
		}
	}
	return nil
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
	if worded := got.Message != "" && got.MessageZH != ""; worded != (got.Decision != "ALLOW") || worded != (got.Message+got.MessageZH != "") {
		t.Errorf("messages of a decision %s: %q, %q", got.Decision, got.Message, got.MessageZH)
	}
	if len(got.Trace) == 0 {
		t.Error("no trace")
	}
	forget(&got.Function, want.Function == "")
	forget(&got.Risk, want.Risk == "")
	forget(&got.Binding, want.Binding == nil)
	forget(&got.Trace, want.Trace == nil)
	forget(&got.Message, want.Message == "")
	forget(&got.MessageZH, want.MessageZH == "")
	if g, w := text(t, got), text(t, want); g != w {
		t.Errorf("got:\n%s\nwant:\n%s", g, w)
	}
}

func forget[T any](value *T, unwanted bool) {
	if unwanted {
		*value = *new(T)
	}
}

// text is the answer as a case file would say it.
func text(t *testing.T, a Answer) string {
	t.Helper()
	data, err := yaml.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
