package main

import (
	"fmt"
	"io"
)

// What is measured of MCP.
const (
	mcpDirectCall = "tools/call, directly"
	mcpDirectList = "tools/list, directly"
	mcpCall       = "tools/call, Toolgrant"
	mcpList       = "tools/list, Toolgrant"
)

// mcpReport is what mcp prints.
type mcpReport struct {
	machine
	Protocol     string     `json:"protocol"`
	Functions    int        `json:"functions"`
	RoundSeconds float64    `json:"round_seconds"`
	Results      []*contest `json:"results"`
}

var mcpPairs = []pair{
	{"calls: Toolgrant / directly", mcpCall, mcpDirectCall, perSecond, ratio},
	{"calls: what Toolgrant adds, p50", mcpCall, mcpDirectCall, p50, added},
	{"calls: what Toolgrant adds, p99", mcpCall, mcpDirectCall, p99, added},
	{"lists: Toolgrant / directly", mcpList, mcpDirectList, perSecond, ratio},
}

func (r *mcpReport) print(w io.Writer, output string) error {
	f := tableOf(r.Results, "request", mcpPairs)
	f.remarks = []string{fmt.Sprintf("%d of %d functions are listed, protocol %s, rounds of %gs; %s; %s.", mcpGiven, r.Functions, r.Protocol, r.RoundSeconds, medians, r.machine)}
	return f.print(w, output, r)
}
