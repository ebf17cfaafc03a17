package catalog

import "encoding/json"

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
	Annotations *Annotations    `json:"annotations,omitempty"`  // nil: the server says nothing
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
