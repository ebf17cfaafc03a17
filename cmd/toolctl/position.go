package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// manifestPath is a path in a manifest: section, index, and the rest.
var manifestPath = regexp.MustCompile(`^([a-z_]+)\[(\d+)\](.*)$`)

// reference is where the description of a fault names another object.
var reference = regexp.MustCompile(`first in ([a-z_]+\[\d+\])$`)

// locate returns a server's error with the positions of the fields at fault.
func (m manifests) locate(err error) error {
	violations := violationsOf(err)
	if len(violations) == 0 {
		return err
	}
	located := &manifestError{headline: headlineOf(status.Convert(err).Message(), violations)}
	for _, v := range violations {
		description := v.GetDescription()
		if match := reference.FindStringSubmatch(description); match != nil {
			description = strings.TrimSuffix(description, match[1]) + m.position(match[1])
		}
		located.faults = append(located.faults, m.position(v.GetField())+": "+description)
	}
	return located
}

// position says where a path in the joined manifest stands: "file:line:column: path in that document". Paths
// of stored objects stay as they are.
func (m manifests) position(path string) string {
	match := manifestPath.FindStringSubmatch(path)
	if match == nil {
		return path
	}
	index, err := strconv.Atoi(match[2])
	for _, d := range m {
		message := d.content.ProtoReflect()
		section := message.Descriptor().Fields().ByName(protoreflect.Name(match[1]))
		if section == nil || err != nil {
			return path
		}
		if n := message.Get(section).List().Len(); index >= n {
			index -= n
			continue
		}
		path = fmt.Sprintf("%s[%d]%s", match[1], index, match[3])
		if d.root == nil {
			return d.file + ": " + path
		}
		node := nodeAt(d.root, "."+path)
		return fmt.Sprintf("%s:%d:%d: %s", d.file, d.line+node.Line, node.Column, path)
	}
	return path
}

// nodeAt returns the node at a path, or the last on the way to it that exists.
func nodeAt(node *yaml.Node, path string) *yaml.Node {
	var next *yaml.Node
	var rest string
	switch node.Kind {
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if after, ok := cutStep(path, strconv.Itoa(i)); ok {
				next, rest = item, after
				break
			}
		}
	case yaml.MappingNode: // keys may hold points: the longest that fits is meant
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i].Value
			after, ok := cutStep(path, key)
			if !ok {
				after, ok = cutStep(path, snake(key))
			}
			if ok && (next == nil || len(after) < len(rest)) {
				next, rest = node.Content[i+1], after
			}
		}
	}
	if next == nil {
		return node
	}
	return nodeAt(next, rest)
}

// cutStep returns what follows a step of a path: .key, [index] or ["key"].
func cutStep(path, step string) (rest string, ok bool) {
	for _, form := range []string{"." + step, "[" + step + "]", "[" + strconv.Quote(step) + "]"} {
		if rest, ok = strings.CutPrefix(path, form); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return rest, true
		}
	}
	return "", false
}

// snake is a field's name for one that is written in lowerCamelCase, which is allowed as well.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// place is where a node stands, from the inside out, so that a path costs something only if it is told.
type place struct {
	in    *place
	key   string
	index int
	keyed bool
}

// String is the path, as the server words it.
func (p *place) String() string {
	if p == nil {
		return ""
	}
	var steps []string
	for ; p != nil; p = p.in {
		if p.keyed {
			steps = append(steps, p.key, ".")
		} else {
			steps = append(steps, "["+strconv.Itoa(p.index)+"]")
		}
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString(steps[i])
	}
	return strings.TrimPrefix(b.String(), ".")
}

// places maps positions to what stands there: a value, or, where only a key does, what holds it.
func (d *document) places() map[[2]int]*place {
	places := map[[2]int]*place{}
	var walk func(node *yaml.Node, at *place)
	walk = func(node *yaml.Node, at *place) {
		start := [2]int{node.Line, node.Column}
		if _, taken := places[start]; !taken {
			places[start] = at
		}
		for i, child := range node.Content {
			switch {
			case node.Kind == yaml.SequenceNode:
				walk(child, &place{in: at, index: i})
			case i%2 == 0:
				walk(child, at)
			default:
				walk(child, &place{in: at, key: node.Content[i-1].Value, keyed: true})
			}
		}
	}
	if d.root != nil {
		walk(d.root, nil)
	}
	return places
}
