package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// format is how answers are printed. As a flag it refuses unknown values before anything is asked.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

var formats = []string{string(formatTable), string(formatJSON), string(formatYAML)}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *format) Set(value string) error {
	if !slices.Contains(formats, value) {
		return fmt.Errorf("must be %s", strings.Join(formats, ", "))
	}
	*f = format(value)
	return nil
}

// print prints messages as they are, one after the other, or for people.
func (c *cli) print(w io.Writer, forPeople func(io.Writer), messages ...proto.Message) error {
	if c.output == formatTable {
		harmless := transform.NewWriter(w, printable)
		forPeople(harmless)
		return harmless.Close()
	}
	var out bytes.Buffer
	for i, message := range messages {
		data, err := toJSON(message)
		if err != nil {
			return err
		}
		if c.output == formatJSON {
			err = json.Indent(&out, data, "", "  ") // protojson varies its space on purpose
			out.WriteByte('\n')
		} else {
			if i > 0 {
				out.WriteString("---\n")
			}
			err = writeYAML(&out, data)
		}
		if err != nil {
			return err
		}
	}
	_, err := out.WriteTo(w)
	return err
}

func toJSON(message proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
}

// writeYAML writes JSON as YAML that reads as the same message. protoyaml writes messages, too, but parses their
// JSON as YAML on the way, which changes texts with unusual line breaks.
func writeYAML(w io.Writer, data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	node, err := yamlNode(decoder)
	if err != nil {
		return err
	}
	return yaml.NewEncoder(w).Encode(node)
}

// yamlNode reads the next JSON value. The keys of its objects stay in their order.
func yamlNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch value := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.MappingNode}
		if value == '[' {
			node.Kind = yaml.SequenceNode
		}
		for decoder.More() { // keys and values take turns in both JSON's tokens and YAML's nodes
			child, err := yamlNode(decoder)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err := decoder.Token() // the closing one
		return node, err
	case string:
		node := &yaml.Node{}
		node.SetString(value)
		if checkCharacters([]byte(value)) != "" || strings.TrimLeft(value, " \t\n") != value {
			node.Style = yaml.DoubleQuotedStyle // with escapes; the library indents blocks that begin with space wrongly
		}
		return node, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	case json.Number:
		node := &yaml.Node{Kind: yaml.ScalarNode, Value: value.String()}
		if number, err := value.Float64(); err == nil && math.Abs(number) > 1<<53 {
			node.Value = strconv.FormatFloat(number, 'e', -1, 64) // protoyaml takes inexact integers for strings
		}
		return node, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil // true or false
}

// printable replaces what would control the terminal: stored texts may hold anything.
var printable = runes.Map(func(r rune) rune {
	if (unicode.IsControl(r) && r != '\n' && r != '\t') || unicode.Is(unicode.Bidi_Control, r) {
		return unicode.ReplacementChar
	}
	return r
})

func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(header)
	return t
}

// word is a value of an enum, as people read it.
func word(value fmt.Stringer, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

// words are those of an enum's values, in the order of their numbers, but for the one that says nothing.
func words[E interface {
	~int32
	fmt.Stringer
}](names map[int32]string, prefix string) []string {
	var all []string
	for _, number := range slices.Sorted(maps.Keys(names)) {
		if number != 0 {
			all = append(all, word(E(number), prefix))
		}
	}
	return all
}
