package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Annotations are what an MCP server says of a function: hints from a stranger, so what is left out is taken for the
// worst.
type Annotations struct {
	ReadOnly    *bool `json:"read_only_hint,omitempty"`   // default false
	Destructive *bool `json:"destructive_hint,omitempty"` // default true
	Idempotent  *bool `json:"idempotent_hint,omitempty"`  // default false
	OpenWorld   *bool `json:"open_world_hint,omitempty"`  // default true
}

// Function is one function of an external MCP server.
type Function struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"` // nil: any object
	// OutputSchema is of the structured content that it returns; nil: unknown.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  *Annotations    `json:"annotations,omitempty"` // nil: the server says nothing
	// Declared is the operator's judgement, which wins over the annotations; empty: none.
	Declared Risk `json:"risk,omitempty"`
}

// Risk is how much harm a call of the function can do.
func (f *Function) Risk() Risk {
	switch a := f.Annotations; {
	case f.Declared != "":
		return f.Declared
	case a == nil:
		return RiskHigh
	case a.ReadOnly != nil && *a.ReadOnly:
		return RiskLow
	case a.Destructive != nil && !*a.Destructive:
		return RiskMedium
	default:
		return RiskHigh
	}
}

// Digest names what the server says of the function: SHA-256, in hexadecimal digits, of its name, title, description,
// annotations and the schemas of its arguments and of what it returns, whose keys may come in any order. What the operator says of it does not
// count.
func (f *Function) Digest() string {
	said := *f
	said.Declared, said.InputSchema, said.OutputSchema = "", nil, nil
	read := func(raw json.RawMessage) (schema any) {
		// Numbers are IEEE doubles, as the API carries them. What is no JSON cannot be stored.
		if len(raw) > 0 && json.Unmarshal(raw, &schema) != nil {
			return string(raw)
		}
		return schema
	}
	text, err := json.Marshal(struct { // keys of maps are written in order
		Function Function `json:"function"`
		Schema   any      `json:"schema"`
		Output   any      `json:"output,omitempty"`
	}{said, read(f.InputSchema), read(f.OutputSchema)})
	if err != nil {
		panic("a function cannot be written as JSON: " + err.Error()) // it has nothing that JSON lacks
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
