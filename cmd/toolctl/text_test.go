package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The documents of a file are those that the YAML library finds in the whole of it, on the same lines.
func FuzzSplitDocuments(f *testing.F) {
	for _, text := range []string{
		"# c\n...\n---\na: b", "a: |\n x\n---\nb: \"x\n y\"\n...\n...\nc: 1", "--- {a: b}\n--- {c: d}\n---\n", "x\n...\n...\n--- 0",
		"---\n...\n---\na: b\n--- # x\n---\nc: d\n...\n# y\n%YAML 1.1\n---\ne: f",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkText([]byte(text)) != "" || checkCharacters([]byte(text)) != "" {
			t.Skip("refused before")
		}
		var got, want []string
		for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
			var document yaml.Node
			if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Skip(err)
			}
			want = append(want, outline(&document, 0)...)
		}
		for _, part := range splitDocuments([]byte(text)) {
			var document yaml.Node
			if err := yaml.Unmarshal(part.data, &document); err != nil {
				t.Fatalf("%q: part %q: %v", text, part.data, err)
			}
			got = append(got, outline(&document, part.line)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\ngot  %q\nwant %q", text, got, want)
		}
	})
}

// outline lists the nodes of a document that is more than a word, with their lines after those before it.
func outline(node *yaml.Node, before int) []string {
	if node.Kind == yaml.DocumentNode && len(node.Content[0].Content) == 0 {
		return nil
	}
	nodes := []string{fmt.Sprint(before+node.Line, node.Column, node.Kind, node.Tag, node.Value)}
	for _, child := range node.Content {
		nodes = append(nodes, outline(child, before)...)
	}
	return nodes
}
