package mcp

import "time"

// Limits bound what an external MCP server may cost. A zero value stands for its default.
type Limits struct {
	// Connect bounds connecting, which for a server that is a child process includes starting it. Default 30 s.
	Connect time.Duration
	// List bounds listing all functions, connecting not included. Default 30 s.
	List time.Duration
	// Functions is how many a server may have. Default 2000, which is what a tool type may have.
	Functions int
	// Pages is how many pages they may come on. Default 200.
	Pages int
	// MessageBytes bounds each message of the server. Default 8 MiB.
	MessageBytes int
	// ListBytes bounds all functions together, as JSON. Default 16 MiB.
	ListBytes int
}

func (l Limits) withDefaults() Limits {
	orDefault(&l.Connect, 30*time.Second)
	orDefault(&l.List, 30*time.Second)
	orDefault(&l.Functions, 2000)
	orDefault(&l.Pages, 200)
	orDefault(&l.MessageBytes, 8<<20)
	orDefault(&l.ListBytes, 16<<20)
	return l
}

func orDefault[T comparable](value *T, byDefault T) {
	var zero T
	if *value == zero {
		*value = byDefault
	}
}
