package call

import (
	"encoding/json"
	"strconv"
	"sync"

	jsonschema "github.com/toolgrant/toolgrant/internal/schema"
)

// Fault is what is wrong with one value of the arguments.
type Fault = jsonschema.Fault

// Bounds of arguments. They hold before any schema is asked: what a hostile model can make it cost is bounded.
const (
	MaxArgumentBytes  = 1 << 20 // as JSON, roughly
	MaxArgumentDepth  = 100     // the whole counts as 1
	MaxArgumentValues = 20_000
	maxFaults         = 16
)

// schema is the schema of a function's arguments, compiled when it is first needed.
type schema struct {
	document *json.RawMessage
	compile  sync.Once
	compiled *jsonschema.Schema
	err      error
}

// schemas are those of one catalogue. Tools of one type share theirs.
type schemas map[*json.RawMessage]*schema

// of returns the schema of a document; nil: there is none.
func (s schemas) of(document *json.RawMessage) *schema {
	if len(*document) == 0 {
		return nil
	}
	if s[document] == nil {
		s[document] = &schema{document: document}
	}
	return s[document]
}

// check tells what is wrong with arguments; none: nothing. A schema that cannot be used lets nothing pass.
func (s *schema) check(arguments map[string]any) []Fault {
	if fault, ok := bounded(arguments); !ok {
		return []Fault{fault}
	}
	if s == nil {
		return nil
	}
	s.compile.Do(func() { s.compiled, s.err = jsonschema.Compile(*s.document) })
	if s.err != nil {
		return []Fault{{Path: "$", Description: "the function's schema cannot be used, so nothing satisfies it"}}
	}
	return s.compiled.Check(arguments, maxFaults)
}

// fitting refuses arguments that do not satisfy the function's schema.
func fitting(_ *Facts, r *Request, c *candidate, a *Answer) bool {
	if r.Arguments == nil {
		return true
	}
	faults := c.function.schema.check(r.Arguments)
	if len(faults) == 0 {
		return true
	}
	first := faults[0].Path + ": " + faults[0].Description
	a.refuse(ReasonBadArguments, "The arguments of "+quoted(r.Function)+" are wrong: "+first+".",
		quoted(r.Function)+"的参数有误："+first+"。")
	a.Next.Faults = faults
	return false
}

// bounded tells whether arguments are within the bounds.
func bounded(arguments map[string]any) (Fault, bool) {
	m := measure{bytes: MaxArgumentBytes, values: MaxArgumentValues}
	m.value(arguments, MaxArgumentDepth)
	switch {
	case m.deep:
		return Fault{Path: "$", Description: "nested more than " + strconv.Itoa(MaxArgumentDepth) + " deep"}, false
	case m.bytes < 0:
		return Fault{Path: "$", Description: "larger than 1 MiB"}, false
	case m.values < 0:
		return Fault{Path: "$", Description: "more than " + strconv.Itoa(MaxArgumentValues) + " values"}, false
	}
	return Fault{}, true
}

// measure is how much is left of the bounds. It stops as soon as one is broken.
type measure struct {
	bytes, values int
	deep          bool
}

func (m *measure) value(value any, depth int) {
	m.values--
	m.bytes -= len(`0,`)
	switch v := value.(type) {
	case string:
		m.bytes -= len(v)
	case json.Number:
		m.bytes -= len(v)
	case map[string]any:
		m.deep = m.deep || depth == 0
		for key, part := range v {
			if m.bytes -= len(key) + len(`"":`); m.over() {
				return
			}
			m.value(part, depth-1)
		}
	case []any:
		m.deep = m.deep || depth == 0
		for _, part := range v {
			if m.over() {
				return
			}
			m.value(part, depth-1)
		}
	}
}

func (m *measure) over() bool { return m.deep || m.bytes < 0 || m.values < 0 }
