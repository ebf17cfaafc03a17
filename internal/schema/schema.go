// Package schema checks JSON documents against JSON Schemas.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Schema is a compiled JSON Schema.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles a JSON Schema. References to other documents are refused.
func Compile(document json.RawMessage) (*Schema, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	const location = "schema:///" // a relative one would become a path on this machine
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(location, value); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled}, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are refused: %s", url)
}

// Fault is what is wrong with one value of a document.
type Fault struct {
	Path        string // "$.city", "$.items[2]"; "$" is the whole
	Description string
}

// Check tells what is wrong with a document, as JSON decodes it; none: nothing. It tells at most so many faults, and
// bounds how long each is.
func (s *Schema) Check(document any, most int) []Fault {
	var broken *jsonschema.ValidationError
	if !errors.As(s.compiled.Validate(document), &broken) {
		return nil
	}
	var faults []Fault
	collect(document, broken, most, &faults)
	return faults
}

// collect gathers the innermost faults.
func collect(document any, e *jsonschema.ValidationError, most int, faults *[]Fault) {
	if len(*faults) == most {
		return
	}
	if len(e.Causes) == 0 {
		*faults = append(*faults, Fault{path(document, e.InstanceLocation), describe(e.ErrorKind)})
		return
	}
	for _, cause := range e.Causes {
		collect(document, cause, most, faults)
	}
}

// path words where a value is in a document.
func path(document any, location []string) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, step := range location {
		switch parent := document.(type) {
		case []any:
			b.WriteString("[" + step + "]")
			i, _ := strconv.Atoi(step)
			document = parent[i]
			continue
		case map[string]any:
			document = parent[step]
		}
		if id.Valid(step) && !strings.ContainsAny(step, ".:@/-") {
			b.WriteString("." + step)
		} else {
			b.WriteString("[" + strconv.Quote(cut(step)) + "]")
		}
	}
	return b.String()
}

// maxText bounds what of a document's texts is told of it.
const maxText = 200

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	text = text[:maxText]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

func describe(kind jsonschema.ErrorKind) string {
	printer := message.NewPrinter(language.English)
	return cut(strings.Join(strings.Fields(kind.LocalizedString(printer)), " "))
}
