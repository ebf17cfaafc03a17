package catalog

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Transport is how an MCP server is spoken to.
type Transport string

// The transports.
const (
	TransportStreamableHTTP Transport = "STREAMABLE_HTTP"
	TransportStdio          Transport = "STDIO"
)

// MCPServer is an MCP server and how it is reached. Its secrets stay in the environment.
type MCPServer struct {
	ID        id.MCPServer `json:"mcp_server_id"`
	Title     string       `json:"title"`
	Transport Transport    `json:"transport"`
	Endpoint  string       `json:"endpoint"` // URL or command line, as the transport says
	Priority  int32        `json:"priority"` // the higher is asked when two have the same function
	// HeadersFromEnv is from a header to the environment variable that has its value; of a child process, from one of
	// its environment variables to the one of the process that starts it.
	HeadersFromEnv map[string]string `json:"headers_from_env"`
}

// CommandLine returns the words of the command that starts a server that is spoken to over standard input and output.
// They are quoted as in a shell; but nothing is run, no variable is put in, and no file names are matched.
func (s *MCPServer) CommandLine() ([]string, error) {
	var words []*syntax.Word
	for word, err := range syntax.NewParser().WordsSeq(strings.NewReader(s.Endpoint)) {
		if err != nil {
			return nil, fmt.Errorf("not a command line: %w", err)
		}
		words = append(words, word)
	}
	fields, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(func(string) string { return "" }), NoUnset: true}, words...)
	switch {
	case err != nil:
		return nil, fmt.Errorf("nothing is put in for what a shell would replace: quote it: %w", err)
	case len(fields) == 0 || fields[0] == "":
		return nil, errors.New("it names no command")
	}
	return fields, nil
}
