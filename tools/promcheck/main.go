// Command promcheck reads queries of PromQL as a JSON list, and writes what each selects, as Prometheus itself
// understands it. It is a module of its own: Prometheus needs much that Toolgrant does not.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

// matcher is a condition of a label, or of the metric's name, which is the label __name__.
type matcher struct {
	Label string `json:"label"`
	Type  string `json:"type"` // = != =~ !~
	Value string `json:"value"`
}

// query is what a query selects, or what is wrong with it.
type query struct {
	Error     string      `json:"error,omitempty"`
	Selectors [][]matcher `json:"selectors,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "promcheck:", err)
		os.Exit(1)
	}
}

func run() error {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return err
	}
	queries := make([]query, len(texts))
	for i, text := range texts {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			queries[i].Error = err.Error()
			continue
		}
		for _, selector := range parser.ExtractSelectors(parsed) {
			var all []matcher
			for _, m := range selector {
				all = append(all, matcher{m.Name, m.Type.String(), m.Value})
			}
			queries[i].Selectors = append(queries[i].Selectors, all)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(queries)
}
