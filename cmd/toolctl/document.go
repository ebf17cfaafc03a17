package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"buf.build/go/protoyaml"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// document is one manifest and where it stands.
type document struct {
	file    string
	line    int        // the lines of the file before it
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
	d := &document{file: file, line: p.line, content: &toolgrantv1.Manifest{}}
	var root yaml.Node
	if err := yaml.Unmarshal(p.data, &root); err != nil {
		return d, []string{d.syntaxError(err)}
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
		places := placesOf(d.root)
		for _, err := range joined.Unwrap() {
			faults = append(faults, d.valueError(err, places))
		}
	} else if err != nil {
		faults = append(faults, d.syntaxError(err))
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
			faults = append(faults, d.check(value, inside)...)
		}
	}
	return faults
}

// yamlError is a message of the YAML library.
var yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)`)

func (d *document) syntaxError(err error) string {
	match := yamlError.FindStringSubmatch(err.Error())
	if match == nil {
		return d.file + ": " + err.Error()
	}
	line, _ := strconv.Atoi(match[1])
	return fmt.Sprintf("%s:%d: %s", d.file, d.line+max(line, 1), match[2])
}

// protoyamlError is a message of protoyaml, which quotes the line besides.
var protoyamlError = regexp.MustCompile(`^:(\d+):(\d+) `)

func (d *document) valueError(err error, places map[[2]int]*place) string {
	match, cause := protoyamlError.FindStringSubmatch(err.Error()), errors.Unwrap(err)
	if match == nil || cause == nil {
		return d.syntaxError(err)
	}
	line, _ := strconv.Atoi(match[1])
	column, _ := strconv.Atoi(match[2])
	return d.at(&yaml.Node{Line: line, Column: column}, places[[2]int{line, column}].String(), cause.Error())
}

// protojsonError is a message of protojson, which varies the space after its prefix.
var protojsonError = regexp.MustCompile(`(?s)^proto:.(.*)\(line (\d+):(\d+)\): (.*)`)

// parseJSON reads a file of JSON.
func parseJSON(file string, data []byte) (*document, []string) {
	d := &document{file: file, content: &toolgrantv1.Manifest{}}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err == nil && len(root.Content) > 0 {
		d.root = root.Content[0] // JSON that is not YAML, too, is read, but without positions
	}
	err := protojson.Unmarshal(data, d.content)
	if err == nil {
		return d, nil
	}
	if match := protojsonError.FindStringSubmatch(err.Error()); match != nil {
		return d, []string{fmt.Sprintf("%s:%s:%s: %s%s", file, match[2], match[3], match[1], match[4])}
	}
	return d, []string{file + ": " + err.Error()}
}
