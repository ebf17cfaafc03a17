package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"buf.build/go/protoyaml"
	"github.com/jedib0t/go-pretty/v6/table"
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
	for i, message := range messages {
		var data []byte
		var err error
		if c.output == formatJSON {
			data, err = protojson.MarshalOptions{UseProtoNames: true, Multiline: true}.Marshal(message)
			data = append(data, '\n')
		} else {
			data, err = protoyaml.MarshalOptions{UseProtoNames: true}.Marshal(message)
			if i > 0 {
				data = append([]byte("---\n"), data...)
			}
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
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
