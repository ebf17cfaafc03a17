package health

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/toolgrant/toolgrant/internal/id"
)

type caseFile struct {
	Policy casePolicy `yaml:"policy"`
	Cases  []struct {
		Name   string      `yaml:"name"`
		Policy *casePolicy `yaml:"policy"`
		Chance float64     `yaml:"chance"`
		Steps  []struct {
			At      *time.Duration `yaml:"at"` // nil: as the step before
			Report  Outcome        `yaml:"report"`
			Times   int            `yaml:"times"` // 0: once
			Call    id.Call        `yaml:"call"`
			Claim   id.Call        `yaml:"claim"`
			Granted bool           `yaml:"granted"`

			State    string         `yaml:"state"`
			Failures *int           `yaml:"failures"`
			Score    *float64       `yaml:"score"`
			Retry    *time.Duration `yaml:"retry"` // that another call is told
		} `yaml:"steps"`
	} `yaml:"cases"`
}

type casePolicy struct {
	FailThreshold int           `yaml:"fail_threshold"`
	Cooldown      time.Duration `yaml:"cooldown"`
	ProbeLease    time.Duration `yaml:"probe_lease"`
}

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no case files", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file caseFile
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		decoder.KnownFields(true)
		if err := decoder.Decode(&file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range file.Cases {
			t.Run(c.Name, func(t *testing.T) {
				policy := Policy(file.Policy)
				if c.Policy != nil {
					policy = Policy(*c.Policy)
				}
				var r Record
				now := begin
				for i, s := range c.Steps {
					if s.At != nil {
						now = begin.Add(*s.At)
					}
					if s.Report != "" {
						for range max(1, s.Times) {
							r = r.Report(Report{Call: s.Call, Outcome: s.Report}, policy, now, c.Chance)
						}
					}
					if s.Claim != "" {
						var granted bool
						if r, granted = r.Claim(s.Claim, policy, now); granted != s.Granted {
							t.Errorf("step %d: granted: %v", i+1, granted)
						}
						if c := r.Condition(s.Claim, now); (c.State != Open) != s.Granted {
							t.Errorf("step %d: %s is told %+v", i+1, s.Claim, c)
						}
					}
					if got := r.State(now).String(); s.State != "" && got != s.State {
						t.Errorf("step %d: it is %s, want %s", i+1, got, s.State)
					}
					if s.Failures != nil && r.Failures != *s.Failures {
						t.Errorf("step %d: %d failures, want %d", i+1, r.Failures, *s.Failures)
					}
					if got := r.Score(now); s.Score != nil && math.Abs(got-*s.Score) > 1e-4 {
						t.Errorf("step %d: score %v, want %v", i+1, got, *s.Score)
					}
					if c := r.Condition("another", now); s.Retry != nil && (c.State != Open || c.RetryAfter != *s.Retry) {
						t.Errorf("step %d: another is told %+v, want %v", i+1, c, *s.Retry)
					}
				}
			})
		}
	}
}
