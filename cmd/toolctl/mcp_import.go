package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/pin"
)

// mcpImport is what `toolctl mcp import` is told.
type mcpImport struct {
	stdio, url             string
	server, toolType, tool string
	name, title            string
	fromEnv                map[string]string
	timeout                time.Duration
}

func (c *cli) mcpImport() *cobra.Command {
	i := &mcpImport{}
	var reason string
	request := &toolgrantv1.ApplyManifestRequest{}
	command := &cobra.Command{
		Use:   "import (--stdio COMMAND | --url URL | --server ID)",
		Short: "Make a tool type of an MCP server, with the functions that it lists now",
		Long: "Connect to an MCP server from this machine, list its functions, and store them: as an MCP server, a tool type, and a first\n" +
			"tool. What is stored is what you approve: what the server changes later must be approved before it can be used.\n\n" +
			"If they exist, the functions are replaced and all else is kept, also your judgement of risks. With --server alone the\n" +
			"server is asked where it was imported from.\n\n" +
			"What a server says of itself is taken for the worst: a function that it does not declare harmless needs an approval.",
		Example: "  toolctl mcp import --stdio 'npx -y @modelcontextprotocol/server-memory' --dry-run\n" +
			"  toolctl mcp import --url https://mcp.example.com/mcp --server maps --from-env Authorization=MAPS_TOKEN\n" +
			"  toolctl mcp import --server maps --dry-run",
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			var manifest *toolgrantv1.Manifest
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ApplyManifestResponse, error) {
				var warnings []*toolgrantv1.Warning
				var err error
				if manifest, warnings, err = i.manifest(ctx, conn); err != nil {
					return nil, err
				}
				request.Manifest = manifest
				response, err := toolgrantv1.NewAdminServiceClient(conn).ApplyManifest(because(ctx, reason), request)
				if err != nil {
					return nil, err
				}
				response.Warnings = append(warnings, response.Warnings...)
				return response, nil
			}, func(w io.Writer, r *toolgrantv1.ApplyManifestResponse) {
				printChanges(w, r, request.GetDryRun(), func(path string) string { return path })
				fmt.Fprintf(w, "%d functions\n", len(manifest.GetToolTypes()[0].GetFunctions()))
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&i.stdio, "stdio", "", "the command that starts the server, spoken to over standard input and output")
	flags.StringVar(&i.url, "url", "", "where the server is, spoken to over streamable HTTP")
	flags.StringVar(&i.server, "server", "", "the id of the MCP server (default: as it calls itself)")
	flags.StringVar(&i.toolType, "tool-type", "", "the id of the tool type (default: the server's)")
	flags.StringVar(&i.tool, "tool", "", "the id of the first tool, if the tool type is new (default: the server's)")
	flags.StringVar(&i.name, "name", "", "the name of that tool, which begins the unique names of its functions (default: made of its id)")
	flags.StringVar(&i.title, "title", "", "what people call it, if it is new (default: as it calls itself)")
	flags.StringToStringVar(&i.fromEnv, "from-env", nil, "HEADER=VARIABLE, of a child process VARIABLE=VARIABLE: take a secret from the environment (may be repeated)")
	flags.DurationVar(&i.timeout, "timeout", 30*time.Second, "how long connecting, and then listing, may take")
	flags.BoolVar(&request.DryRun, "dry-run", false, "show what would change, and change nothing")
	flags.StringVar(&reason, "reason", "", "why, for the audit log")
	command.MarkFlagsMutuallyExclusive("stdio", "url")
	command.MarkFlagsOneRequired("stdio", "url", "server")
	for _, flag := range []string{"stdio", "url", "server", "tool-type", "tool", "name", "title", "from-env", "timeout", "reason"} {
		complete(command, flag, cobra.NoFileCompletions)
	}
	return command
}

// manifest asks the server for its functions, and makes of them what is to be stored.
func (i *mcpImport) manifest(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.Manifest, []*toolgrantv1.Warning, error) {
	client := toolgrantv1.NewCatalogServiceClient(conn)
	server := &toolgrantv1.McpServer{}
	if i.server != "" {
		stored, err := client.GetMcpServer(ctx, &toolgrantv1.GetMcpServerRequest{McpServerId: i.server})
		if err := i.missing(err); err != nil {
			return nil, nil, err
		}
		if stored != nil {
			server = stored.GetMcpServer()
		}
	}
	i.reach(server)
	listing, live, err := i.list(ctx, server)
	if err != nil {
		return nil, nil, fmt.Errorf("the MCP server: %w", err)
	}
	if i.server == "" {
		if i.server = identifier(live.name); i.server == "" {
			return nil, nil, errors.New("the MCP server does not say what it is called: name it with --server")
		}
		stored, err := client.GetMcpServer(ctx, &toolgrantv1.GetMcpServerRequest{McpServerId: i.server})
		if status.Code(err) != codes.NotFound {
			if err != nil {
				return nil, nil, err
			}
			server = stored.GetMcpServer()
			i.reach(server)
		}
	}
	title := cmp.Or(i.title, clean(live.title), clean(live.name))
	server.McpServerId, server.Title = i.server, cmp.Or(server.GetTitle(), title)

	typeID := cmp.Or(i.toolType, i.server)
	manifest := &toolgrantv1.Manifest{McpServers: []*toolgrantv1.McpServer{server}}
	toolType := &toolgrantv1.ToolType{ToolTypeId: typeID, Title: title, Source: toolgrantv1.ToolSource_TOOL_SOURCE_EXTERNAL_MCP, McpServerId: i.server}
	stored, err := client.GetToolType(ctx, &toolgrantv1.GetToolTypeRequest{ToolTypeId: typeID})
	switch {
	case err == nil:
		toolType = stored.GetToolType()
	case status.Code(err) != codes.NotFound:
		return nil, nil, err
	default:
		tool := cmp.Or(i.tool, i.server)
		manifest.Tools = []*toolgrantv1.Tool{{ToolId: tool, ToolTypeId: typeID, Name: cmp.Or(i.name, modelName(tool)), Title: title}}
	}
	manifest.ToolTypes = []*toolgrantv1.ToolType{toolType}
	risks := map[string]toolgrantv1.ToolRisk{}
	for _, f := range toolType.GetFunctions() {
		risks[f.GetName()] = f.GetRisk()
	}
	toolType.Functions = nil
	var warnings []*toolgrantv1.Warning
	names := pin.NamesOf(listing.Functions)
	for at := range listing.Functions {
		f := &listing.Functions[at]
		message, err := functionToProto(f)
		if err != nil {
			return nil, nil, fmt.Errorf("the MCP server: %s: %w", f.Name, err)
		}
		message.Risk = risks[f.Name]
		toolType.Functions = append(toolType.Functions, message)
		for _, finding := range pin.Inspect(f, names) {
			warnings = append(warnings, &toolgrantv1.Warning{Field: f.Name, Description: finding})
		}
	}
	for _, f := range listing.LeftOut {
		warnings = append(warnings, &toolgrantv1.Warning{Field: f.Name, Description: "left out: " + f.Why})
	}
	return manifest, warnings, nil
}

// missing tells what is wrong, unless it is only that a server that will be made is not there yet.
func (i *mcpImport) missing(err error) error {
	if status.Code(err) == codes.NotFound && (i.stdio != "" || i.url != "") {
		return nil
	}
	return err
}

// reach says how the server is reached, where it was told.
func (i *mcpImport) reach(server *toolgrantv1.McpServer) {
	switch {
	case i.stdio != "":
		server.Transport, server.Endpoint = toolgrantv1.McpTransport_MCP_TRANSPORT_STDIO, i.stdio
	case i.url != "":
		server.Transport, server.Endpoint = toolgrantv1.McpTransport_MCP_TRANSPORT_STREAMABLE_HTTP, i.url
	}
	if len(i.fromEnv) > 0 {
		server.HeadersFromEnv = i.fromEnv
	}
}

// introduction is what a server calls itself.
type introduction struct{ name, title string }

func (i *mcpImport) list(ctx context.Context, server *toolgrantv1.McpServer) (*mcp.Listing, introduction, error) {
	dialer := mcp.Dialer{Stdio: true, Limits: mcp.Limits{Connect: i.timeout, List: i.timeout}} // it is run for whoever types the command
	live, err := dialer.Dial(ctx, serverFromProto(server))
	if err != nil {
		return nil, introduction{}, err
	}
	defer live.Close()
	listing, err := live.List(ctx)
	name, title, _ := live.Introduction()
	return listing, introduction{name, title}, err
}

func functionToProto(f *catalog.Function) (*toolgrantv1.McpFunction, error) {
	message := &toolgrantv1.McpFunction{Name: f.Name, Title: f.Title, Description: f.Description}
	if f.InputSchema != nil {
		message.InputSchema = &structpb.Struct{}
		if err := message.InputSchema.UnmarshalJSON(f.InputSchema); err != nil {
			return nil, err
		}
	}
	if f.OutputSchema != nil {
		message.OutputSchema = &structpb.Struct{}
		if err := message.OutputSchema.UnmarshalJSON(f.OutputSchema); err != nil {
			return nil, err
		}
	}
	if a := f.Annotations; a != nil {
		message.Annotations = &toolgrantv1.McpAnnotations{ReadOnlyHint: a.ReadOnly, DestructiveHint: a.Destructive,
			IdempotentHint: a.Idempotent, OpenWorldHint: a.OpenWorld}
	}
	return message, nil
}

var (
	noIdentifier = regexp.MustCompile(`[^A-Za-z0-9._:@/-]+`)
	noModelName  = regexp.MustCompile(`[^A-Za-z0-9-]+`)
)

// identifier makes an id of what a server calls itself.
func identifier(name string) string {
	name = strings.Trim(noIdentifier.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return name[:min(len(name), 128)]
}

// maxModelName leaves room for functions in names of at most 64 characters.
const maxModelName = 32

// modelName makes a name for models of an id.
func modelName(tool string) string {
	name := noModelName.ReplaceAllString(tool, "_")
	return cmp.Or(strings.Trim(name[:min(len(name), maxModelName)], "_"), "mcp")
}

// clean is a title that is not longer, and not more surprising, than it may be.
func clean(title string) string {
	title = printable.String(strings.Join(strings.Fields(strings.ToValidUTF8(title, "")), " "))
	return strings.ToValidUTF8(title[:min(len(title), 200)], "")
}
