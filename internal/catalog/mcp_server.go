package catalog

import "github.com/toolgrant/toolgrant/internal/id"

// Transport is how an MCP server is spoken to.
type Transport string

// The transports.
const (
	TransportStreamableHTTP Transport = "STREAMABLE_HTTP"
	TransportStdio          Transport = "STDIO"
)

// MCPServer is an MCP server and how it is reached. Its secrets stay in the environment.
type MCPServer struct {
	ID             id.MCPServer      `json:"mcp_server_id"`
	Title          string            `json:"title"`
	Transport      Transport         `json:"transport"`
	Endpoint       string            `json:"endpoint"`         // URL or command line, as the transport says
	Priority       int32             `json:"priority"`         // the higher is asked when two have the same function
	HeadersFromEnv map[string]string `json:"headers_from_env"` // from header to environment variable
}
