package grpcserver

import (
	gostrings "strings"

	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

func capabilityFromProto(p *toolgrantv1.Capability) catalog.Capability {
	c := catalog.Capability{Domains: p.GetDomains(), Requires: p.GetRequires(), LatencyHintMs: p.GetLatencyHintMs(),
		SupportsParallel: p.GetSupportsParallel(), DeterministicFor: p.GetDeterministicFor(),
		ProviderConstraints: p.GetProviderConstraints(), Fallback: ids[id.Tool](p.GetDegradePolicy().GetFallbackToolIds())}
	if level := p.GetSemanticLevel(); level != toolgrantv1.SemanticLevel_SEMANTIC_LEVEL_UNSPECIFIED {
		c.SemanticLevel = catalog.SemanticLevel(gostrings.TrimPrefix(level.String(), "SEMANTIC_LEVEL_"))
	}
	if class := p.GetCostClass(); class != toolgrantv1.CostClass_COST_CLASS_UNSPECIFIED {
		c.CostClass = catalog.CostClass(gostrings.TrimPrefix(class.String(), "COST_CLASS_"))
	}
	return c
}

// capabilityToProto returns nil for a tool that declares nothing.
func capabilityToProto(c *catalog.Capability) *toolgrantv1.Capability {
	p := &toolgrantv1.Capability{Domains: c.Domains, Requires: c.Requires, LatencyHintMs: c.LatencyHintMs,
		SupportsParallel: c.SupportsParallel, DeterministicFor: c.DeterministicFor, ProviderConstraints: c.ProviderConstraints,
		SemanticLevel: toolgrantv1.SemanticLevel(toolgrantv1.SemanticLevel_value["SEMANTIC_LEVEL_"+string(c.SemanticLevel)]),
		CostClass:     toolgrantv1.CostClass(toolgrantv1.CostClass_value["COST_CLASS_"+string(c.CostClass)])}
	if len(c.Fallback) > 0 {
		p.DegradePolicy = &toolgrantv1.DegradePolicy{FallbackToolIds: strings(c.Fallback)}
	}
	if proto.Size(p) == 0 {
		return nil
	}
	return p
}

func healthPolicyFromProto(p *toolgrantv1.HealthPolicy) catalog.HealthPolicy {
	return catalog.HealthPolicy{FailThreshold: p.GetFailThreshold(), CooldownMs: p.GetCooldownMs()}
}

// healthPolicyToProto returns nil for a policy that sets nothing.
func healthPolicyToProto(h catalog.HealthPolicy) *toolgrantv1.HealthPolicy {
	if h == (catalog.HealthPolicy{}) {
		return nil
	}
	p := &toolgrantv1.HealthPolicy{}
	if h.FailThreshold != 0 {
		p.FailThreshold = &h.FailThreshold
	}
	if h.CooldownMs != 0 {
		p.CooldownMs = &h.CooldownMs
	}
	return p
}
