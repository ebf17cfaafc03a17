package catalog

import "github.com/toolgrant/toolgrant/internal/id"

// SemanticLevel is how much of a task one call does; empty: not declared.
type SemanticLevel string

// The levels.
const (
	LevelPrimitive SemanticLevel = "PRIMITIVE"
	LevelComposite SemanticLevel = "COMPOSITE"
	LevelTask      SemanticLevel = "TASK"
)

// CostClass is what a call costs, roughly; empty: not declared.
type CostClass string

// The classes.
const (
	CostFree   CostClass = "FREE"
	CostLow    CostClass = "LOW"
	CostMedium CostClass = "MEDIUM"
	CostHigh   CostClass = "HIGH"
)

// Capability is what a tool declares about itself.
type Capability struct {
	Domains       []string      `json:"domains,omitempty"`
	SemanticLevel SemanticLevel `json:"semantic_level,omitempty"`
	// Requires are the preconditions of a call: ParseRequirement reads them.
	Requires            []string  `json:"requires,omitempty"`
	CostClass           CostClass `json:"cost_class,omitempty"`
	LatencyHintMs       int32     `json:"latency_hint_ms,omitempty"`
	SupportsParallel    bool      `json:"supports_parallel,omitempty"`
	DeterministicFor    []string  `json:"deterministic_for,omitempty"`
	ProviderConstraints []string  `json:"provider_constraints,omitempty"` // none: all
	Fallback            []id.Tool `json:"fallback_tool_ids,omitempty"`    // best first
}

// HealthPolicy is when a tool that fails is put aside. Zero fields are the server's settings.
type HealthPolicy struct {
	FailThreshold int32 `json:"fail_threshold,omitempty"` // transport failures in a row
	CooldownMs    int32 `json:"cooldown_ms,omitempty"`
}
