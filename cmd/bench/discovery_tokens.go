package main

import (
	"encoding/json"

	"github.com/tiktoken-go/tokenizer"

	"github.com/toolgrant/toolgrant/internal/discovery"
)

// function is a tool as chat servers hand it to models.
type function struct {
	Type     string `json:"type"`
	Function struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Parameters  struct {
			Type       string                       `json:"type"`
			Properties map[string]map[string]string `json:"properties"`
		} `json:"parameters"`
	} `json:"function"`
}

func schemaOf(name, description string, parameters map[string]string) ([]byte, error) {
	f := function{Type: "function"}
	f.Function.Name, f.Function.Description = name, description
	f.Function.Parameters.Type = "object"
	f.Function.Parameters.Properties = map[string]map[string]string{}
	for parameter, about := range parameters {
		f.Function.Parameters.Properties[parameter] = map[string]string{"type": "string", "description": about}
	}
	return json.Marshal(f)
}

// coreFunctions are what a model needs to find and to enable tools.
var coreFunctions = []dataTool{
	{Name: "search_tools", Description: "Find tools for what is to be done. Ask for one step at a time.",
		Parameters: map[string]string{"query": "What is to be done, in words", "top_k": "How many tools at most"}},
	{Name: "enable_tools", Description: "Turn on tools that were found, for some turns.",
		Parameters: map[string]string{"names": "Names of tools", "ttl_turns": "For how many turns"}},
}

// tokensReport counts tokens of the schemas of all tools, and of core and found ones.
func tokensReport(sets []*dataSet, weights discovery.Weights) (*discoveryReport, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	count := func(t *dataTool) (int, error) {
		schema, err := schemaOf(t.Name, t.Description, t.Parameters)
		if err != nil {
			return 0, err
		}
		return codec.Count(string(schema))
	}
	core := 0
	for i := range coreFunctions {
		n, err := count(&coreFunctions[i])
		if err != nil {
			return nil, err
		}
		core += n
	}
	r := newDiscoveryReport("set", "tools", "all schemas", "core + top-3", "core + top-5", "saved at top-5, %")
	for _, s := range sets {
		tokens, all := map[string]int{}, 0
		for i := range s.tools {
			n, err := count(&s.tools[i])
			if err != nil {
				return nil, err
			}
			tokens[s.tools[i].Name] = n
			all += n
		}
		ranker := discovery.NewRanker(discovery.NewIndex(s.searched()), weights)
		chosen := sampled(s.queries)
		var queries, three, five int
		for i, q := range s.queries {
			if !chosen(i) {
				continue
			}
			queries++
			for place, m := range ranker.Search(discovery.Query{Text: q.Query, Limit: 5}).Matches {
				if place < 3 {
					three += tokens[string(m.Tool)]
				}
				five += tokens[string(m.Tool)]
			}
		}
		mean := func(sum int) int { return core + sum/max(queries, 1) }
		r.add(s.name, len(s.tools), all, mean(three), mean(five), 100*(1-float64(mean(five))/float64(all)))
	}
	r.Remarks = append(r.Remarks, "Tokens by the encoding o200k_base, of schemas as JSON without white space; means over queries, cold ranking. "+
		"Core: search_tools and enable_tools. All parameters count as strings: the sets do not tell their types.")
	return r, nil
}
