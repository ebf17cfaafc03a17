package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"buf.build/go/protoyaml"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// document is one manifest and where it stands.
type document struct {
	file    string
	line    int        // the lines of the file before it
	lines   int        // its own
	root    *yaml.Node // for positions; nil: they are not known
	content *toolgrantv1.Manifest
}

// at words a fault at a node.
func (d *document) at(node *yaml.Node, path, fault string) string {
	position := fmt.Sprintf("%s:%d:%d: ", d.file, d.line+node.Line, node.Column)
	if path != "" {
		position += path + ": "
	}
	return position + fault
}

// parseYAML reads a document of a file.
func parseYAML(file string, p part) (*document, []string) {
	d := &document{file: file, line: p.line, lines: bytes.Count(p.data, []byte("\n")) + 1, content: &toolgrantv1.Manifest{}}
	var root yaml.Node
	if err := yaml.Unmarshal(p.data, &root); err != nil {
		return d, []string{d.syntaxError(err, p.data)}
	}
	if len(root.Content) == 0 {
		return d, nil
	}
	d.root = root.Content[0]
	if faults := d.check(d.root, nil); len(faults) > 0 {
		return d, faults
	}
	var faults []string
	err := protoyaml.Unmarshal(p.data, d.content)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		places := d.places()
		for _, err := range joined.Unwrap() {
			match, cause := protoyamlError.FindStringSubmatch(err.Error()), errors.Unwrap(err)
			if match == nil || cause == nil {
				return d, []string{d.syntaxError(err, p.data)}
			}
			faults = append(faults, d.valueFault(match[1], match[2], places, cause.Error()))
		}
	} else if err != nil {
		faults = append(faults, d.syntaxError(err, p.data))
	}
	return d, faults
}

// check refuses what YAML allows and manifests don't: keys that occur twice, of which one would be lost, and
// aliases, with which a few lines stand for more than fits in memory.
func (d *document) check(node *yaml.Node, at *place) []string {
	var faults []string
	switch node.Kind {
	case yaml.AliasNode:
		faults = append(faults, d.at(node, at.String(), "aliases are not supported: write out what *"+node.Value+" stands for"))
	case yaml.SequenceNode:
		for i, item := range node.Content {
			faults = append(faults, d.check(item, &place{in: at, index: i})...)
		}
	case yaml.MappingNode:
		seen := make(map[string]bool, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			inside := &place{in: at, key: key.Value, keyed: true}
			if key.Kind != yaml.ScalarNode {
				faults = append(faults, d.at(key, at.String(), "a key must be a word"))
			} else if seen[key.Value] {
				faults = append(faults, d.at(key, inside.String(), "occurs twice"))
			}
			seen[key.Value] = true
			if value.Line > d.lines {
				faults = append(faults, d.at(key, inside.String(), "has no value")) // protoyaml would panic
				continue
			}
			faults = append(faults, d.check(value, inside)...)
		}
	}
	return faults
}

// yamlError is a message of the YAML library.
var yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)`)

// unknownAnchor is the one message that comes without a line: the first text like the alias is pointed at.
var unknownAnchor = regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`)

func (d *document) syntaxError(err error, data []byte) string {
	if match := unknownAnchor.FindStringSubmatch(err.Error()); match != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+match[1]))
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		return d.at(&yaml.Node{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1}, "", match[0][len("yaml: "):])
	}
	match := yamlError.FindStringSubmatch(err.Error())
	if match == nil {
		return d.file + ": " + err.Error()
	}
	line, _ := strconv.Atoi(match[1]) // nothing: the first line
	if line == 0 || strings.HasPrefix(match[2], "did not find expected") {
		line++ // the library's parser counts lines from 0, its scanner from 1
	}
	return fmt.Sprintf("%s:%d: %s", d.file, d.line+line, match[2])
}

// protoyamlError is a message of protoyaml, which quotes the line besides.
var protoyamlError = regexp.MustCompile(`^:(\d+):(\d+) `)

// parseJSON reads a file of JSON.
func parseJSON(file string, data []byte) (*document, []string) {
	d := &document{file: file, content: &toolgrantv1.Manifest{}}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err == nil && len(root.Content) > 0 {
		d.root = root.Content[0] // JSON that is not YAML, too, is read, but faults get no paths
	}
	err := protojson.Unmarshal(data, d.content)
	if err == nil {
		return d, nil
	}
	if match := protojsonError.FindStringSubmatch(err.Error()); match != nil {
		return d, []string{d.valueFault(match[2], match[3], d.places(), match[1]+match[4])}
	}
	return d, []string{file + ": " + err.Error()}
}

// protojsonError is a message of protojson, which varies the space after its prefix.
var protojsonError = regexp.MustCompile(`(?s)^proto:.(.*?) ?\(line (\d+):(\d+)\)(: .*)`)

// valueFault words a fault at a position that a library told.
func (d *document) valueFault(line, column string, places map[[2]int]*place, fault string) string {
	start := [2]int{}
	for i, text := range []string{line, column} {
		start[i], _ = strconv.Atoi(text) // digits
	}
	return d.at(&yaml.Node{Line: start[0], Column: start[1]}, places[start].String(), strings.TrimPrefix(fault, ": "))
}
