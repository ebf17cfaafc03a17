package grpcserver

import (
	gostrings "strings"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
)

func functionsFromProto(list []*toolgrantv1.McpFunction) []catalog.Function {
	var functions []catalog.Function
	for _, p := range list {
		f := catalog.Function{Name: p.GetName(), Title: p.GetTitle(), Description: p.GetDescription(), InputSchema: jsonFromStruct(p.GetInputSchema()), OutputSchema: jsonFromStruct(p.GetOutputSchema())}
		if a := p.GetAnnotations(); a != nil {
			f.Annotations = &catalog.Annotations{ReadOnly: a.ReadOnlyHint, Destructive: a.DestructiveHint,
				Idempotent: a.IdempotentHint, OpenWorld: a.OpenWorldHint}
		}
		if r := p.GetRisk(); r != toolgrantv1.ToolRisk_TOOL_RISK_UNSPECIFIED {
			f.Declared = catalog.Risk(gostrings.TrimPrefix(r.String(), "TOOL_RISK_"))
		}
		functions = append(functions, f)
	}
	return functions
}

func functionsToProto(functions []catalog.Function) ([]*toolgrantv1.McpFunction, error) {
	var list []*toolgrantv1.McpFunction
	for _, f := range functions {
		schema, err := structFromJSON(f.InputSchema)
		if err != nil {
			return nil, err
		}
		output, err := structFromJSON(f.OutputSchema)
		if err != nil {
			return nil, err
		}
		p := &toolgrantv1.McpFunction{Name: f.Name, Title: f.Title, Description: f.Description, InputSchema: schema, OutputSchema: output, Risk: riskToProto(f.Declared), Digest: f.Digest()}
		if a := f.Annotations; a != nil {
			p.Annotations = &toolgrantv1.McpAnnotations{ReadOnlyHint: a.ReadOnly, DestructiveHint: a.Destructive,
				IdempotentHint: a.Idempotent, OpenWorldHint: a.OpenWorld}
		}
		list = append(list, p)
	}
	return list, nil
}
