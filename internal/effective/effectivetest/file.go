// Package effectivetest reads the cases of the rules: YAML files that hold a small world and questions about
// it, with the answers that the rules demand. The pure functions and the server are asked the same questions,
// so that neither can mean something else than the other. docs/semantics.md says how to add a case.
package effectivetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Web is how cases name the web as a surface.
const Web = "web"

// File is a case file.
type File struct {
	Concept string `yaml:"-"` // the file's name
	// World is in the shape of a manifest. Who asks decodes it: into protos, or without knowing any.
	World     yaml.Node  `yaml:"world"`
	Questions []Question `yaml:"questions"`
}

// Question is one question and the answer that is wanted. It is about a chat of its own.
type Question struct {
	Name         string `yaml:"name"`
	Conversation `yaml:",inline"`

	Explain string `yaml:"explain"` // a tool: its steps are wanted

	Want Answer `yaml:",inline"`
}

// Conversation is who asks, where and when, and what happened in the chat before.
type Conversation struct {
	User   string    `yaml:"user"`
	Device string    `yaml:"device"` // empty: the web
	Now    time.Time `yaml:"now"`    // default: 2026-01-01T00:00:00Z
	Turn   *int32    `yaml:"turn"`   // default: the chat's

	// A chat is created, with its default Avatar as the first entry, if any of these is given. Otherwise it is
	// new.
	CreatedBy string  `yaml:"created_by"` // a user; default: who asks
	CreatedOn string  `yaml:"created_on"` // a device, or "web"; default: where it is asked
	Log       []Entry `yaml:"log"`        // written after the creation, one request each
}

// Entry is what happens to a chat in one request: it turns something on or off, or merely asks.
type Entry struct {
	Enable        string `yaml:"enable"`
	Disable       string `yaml:"disable"`
	EnableAvatar  string `yaml:"enable_avatar"`
	DisableAvatar string `yaml:"disable_avatar"`
	TTLTurns      int32  `yaml:"ttl_turns"`
	Turn          *int32 `yaml:"turn"` // default: the chat's
	AskedInTurn   *int32 `yaml:"asked_in_turn"`
}

// Created tells whether the chat was created.
func (c *Conversation) Created() bool {
	return c.CreatedBy != "" || c.CreatedOn != "" || len(c.Log) > 0
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
	var files []File
	for _, path := range paths {
		file, err := load(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, file)
	}
	return files, nil
}

func load(path string) (File, error) {
	file := File{Concept: strings.TrimSuffix(filepath.Base(path), ".yaml")}
	data, err := os.ReadFile(path)
	if err != nil {
		return file, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return file, err
	}
	names := map[string]bool{}
	for i := range file.Questions {
		q := &file.Questions[i]
		if q.Name == "" || names[q.Name] {
			return file, fmt.Errorf("question %d has no name of its own", i+1)
		}
		names[q.Name] = true
		q.Complete()
	}
	return file, nil
}

// Complete fills in what was left out.
func (c *Conversation) Complete() {
	if c.Now.IsZero() {
		c.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if !c.Created() {
		return
	}
	if c.CreatedBy == "" {
		c.CreatedBy = c.User
	}
	if c.CreatedOn == "" {
		c.CreatedOn = c.Device
	}
	if c.CreatedOn == "" {
		c.CreatedOn = Web
	}
}
