package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// dataTool is a line of tools.jsonl.
type dataTool struct {
	Name              string            `json:"name"`
	Description       string            `json:"description"`
	Parameters        map[string]string `json:"parameters"` // descriptions by name
	Server            string            `json:"server"`
	ServerDescription string            `json:"server_description"`
	Category          string            `json:"category"`
}

// dataQuery is a line of queries.jsonl: what was asked, and the tools of which each would do or, where
// several steps are needed, is one.
type dataQuery struct {
	Query    string    `json:"query"`
	Relevant []id.Tool `json:"relevant"`
}

// dataSet is a folder of them, with one of its files of queries.
type dataSet struct {
	name    string
	tools   []dataTool
	queries []dataQuery
}

// readSets reads the sets of a directory: each folder that has tools.jsonl, once for each queries*.jsonl.
func readSets(dir string, only []string) ([]*dataSet, error) {
	files, err := fs.Glob(os.DirFS(dir), "*/queries*.jsonl")
	if err != nil {
		return nil, err
	}
	var sets []*dataSet
	for _, file := range files {
		folder, name := filepath.Split(file)
		folder = filepath.Clean(folder)
		variant := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(name, "queries"), ".jsonl"), ".")
		set := &dataSet{name: strings.TrimSpace(folder + " " + variant)}
		if len(only) > 0 && !slices.Contains(only, set.name) && !slices.Contains(only, folder) {
			continue
		}
		if err := errors.Join(readLines(filepath.Join(dir, folder, "tools.jsonl"), &set.tools), readLines(filepath.Join(dir, file), &set.queries)); err != nil {
			return nil, err
		}
		if err := set.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
		}
		sets = append(sets, set)
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("--data: no folder with queries*.jsonl in %s", dir)
	}
	return sets, nil
}

// readLines reads a file of one JSON value a line.
func readLines[T any](path string, into *[]T) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		*into = append(*into, one)
	}
	return lines.Err()
}

func (s *dataSet) check() error {
	known := map[id.Tool]bool{}
	for _, t := range s.tools {
		known[id.Tool(t.Name)] = true
	}
	for i, q := range s.queries {
		if len(q.Relevant) == 0 {
			return fmt.Errorf("query %d: has no relevant tool", i+1)
		}
		for _, tool := range q.Relevant {
			if !known[tool] {
				return fmt.Errorf("query %d: no tool %q in tools.jsonl", i+1, tool)
			}
		}
	}
	return nil
}

// searched returns the tools as a search knows them.
func (s *dataSet) searched() []discovery.Tool {
	tools := make([]discovery.Tool, len(s.tools))
	for i, t := range s.tools {
		tools[i] = discovery.Tool{ID: id.Tool(t.Name), Name: strings.TrimPrefix(t.Name, t.Server+"/"), Descriptions: []string{t.Description},
			Parameters: t.parameters(), Category: t.Category, Server: t.Server, ServerDescription: t.ServerDescription}
	}
	return tools
}

// plain returns the tools as plain BM25 sees them: all text in one field.
func (s *dataSet) plain() []discovery.Tool {
	tools := s.searched()
	for i, t := range tools {
		texts := append([]string{t.Name}, t.Descriptions...)
		for _, p := range t.Parameters {
			texts = append(texts, p.Name, p.Description)
		}
		texts = append(texts, t.Server, t.Category, t.ServerDescription)
		tools[i] = discovery.Tool{ID: t.ID, Descriptions: []string{strings.Join(texts, "\n")}}
	}
	return tools
}

// plainWeights are those of plain BM25, with k1 and b as they usually are.
func plainWeights() discovery.Weights {
	w := discovery.DefaultWeights()
	w.Fields = discovery.FieldWeights{Description: 1}
	w.LengthNormalization = discovery.FieldWeights{Description: 0.75}
	w.Saturation, w.Repetition, w.Number = 1.2, 1, 1
	w.NameCoverage, w.Sentences, w.Grams = 0, 0, 0
	return w
}

func (t *dataTool) parameters() []discovery.Parameter {
	parameters := make([]discovery.Parameter, 0, len(t.Parameters))
	for name, description := range t.Parameters {
		parameters = append(parameters, discovery.Parameter{Name: name, Description: description})
	}
	slices.SortFunc(parameters, func(a, b discovery.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return parameters
}
