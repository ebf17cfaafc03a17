package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// proxying is the settings of mcp.
type proxying struct {
	address, url, protocol, output string
	concurrency                    []int
	duration, warmup               time.Duration
	rounds, functions              int
}

func mcpCommand() *cobra.Command {
	p := &proxying{}
	command := &cobra.Command{
		Use:   "mcp",
		Short: "Measure calls of an MCP server's function through Toolgrant, beside calling the server directly",
		Long: "Start an MCP server that answers at once, in a process of its own, and measure tools/call and tools/list of it through Toolgrant, and " +
			"directly. Rounds of all alternate; of each figure the median of the rounds is told. Each worker has a session of its own.\n\n" +
			"The server, tool types with functions, and a user who is given 40 of them, are written to Toolgrant first; their ids begin with bench-mcp.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := p.validate(); err != nil {
				return err
			}
			report, err := p.run(command.Context(), command.ErrOrStderr())
			if report != nil {
				err = errors.Join(report.print(command.OutOrStdout(), p.output), err)
			}
			return err
		},
	}
	f := command.Flags()
	f.StringVar(&p.address, "addr", defaultAddress, "Toolgrant's gRPC address")
	f.StringVar(&p.url, "url", "http://127.0.0.1:7701/mcp", "where Toolgrant serves MCP")
	f.StringVar(&p.protocol, "protocol", "2025-11-25", "the revision of the protocol that the client speaks")
	f.IntSliceVar(&p.concurrency, "concurrency", []int{1, 16}, "how many ask at a time; each number is measured")
	f.DurationVar(&p.duration, "duration", time.Second, "how long a round is")
	f.DurationVar(&p.warmup, "warmup", 200*time.Millisecond, "how long each round asks before it measures")
	f.IntVar(&p.rounds, "rounds", 9, "rounds of each")
	f.IntVar(&p.functions, "functions", 5_000, "functions in the catalogue, of which the user is given 40")
	f.StringVarP(&p.output, "output", "o", outputTable, outputUsage)
	return command
}

// validate names every fault.
func (p *proxying) validate() error {
	faults := []error{checkAddresses(p.address), checkOutput(p.output),
		checkCount("--concurrency: how many numbers", len(p.concurrency), 1, 16),
		checkDuration("--duration", p.duration, 10*time.Millisecond, 10*time.Minute),
		checkDuration("--warmup", p.warmup, 0, time.Minute),
		checkCount("--rounds", p.rounds, 1, 100),
		checkCount("--functions", p.functions, mcpGiven, 1_000_000),
	}
	for _, n := range p.concurrency {
		faults = append(faults, checkCount("--concurrency", n, 1, 256))
	}
	if u, err := url.Parse(p.url); err != nil || u.Host == "" {
		faults = append(faults, fmt.Errorf("--url: must be an http or https URL, not %q", p.url))
	}
	return errors.Join(faults...)
}

// run measures. Where requests failed it returns both an error and the report up to there.
func (p *proxying) run(ctx context.Context, log io.Writer) (r *mcpReport, err error) {
	conns, closeAll, err := connect([]string{p.address}, 1)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	direct, stop, err := startMCPServer(ctx, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := writeMCPWorld(ctx, conns[0], direct, p.functions); err != nil {
		return nil, err
	}
	r = &mcpReport{machine: thisMachine(), Protocol: p.protocol, Functions: p.functions, RoundSeconds: p.duration.Seconds()}
	for _, n := range p.concurrency {
		if err := p.measure(ctx, r, n, direct, log); err != nil {
			return r, err
		}
	}
	return r, nil
}

// measure measures at one concurrency, with sessions of its own.
func (p *proxying) measure(ctx context.Context, r *mcpReport, concurrency int, direct string, log io.Writer) error {
	var contenders []contender
	for _, to := range []struct{ call, list, url, function string }{
		{mcpDirectCall, mcpDirectList, direct, mcpFunction}, {mcpCall, mcpList, p.url, mcpPrefix + "__" + mcpFunction}} {
		sessions, closeSessions, err := p.sessions(ctx, to.url, concurrency)
		if err != nil {
			return fmt.Errorf("%s: %w", to.url, err)
		}
		defer closeSessions()
		contenders = append(contenders, contender{to.call, callsOf(sessions, to.function)}, contender{to.list, listsOf(sessions)})
	}
	result := &contest{Concurrency: concurrency}
	r.Results = append(r.Results, result)
	return result.run(ctx, pace{p.warmup, p.duration}, contenders, p.rounds, 0, log)
}

// sessions opens sessions of the user, each in a chat of its own, and returns what closes them.
func (p *proxying) sessions(ctx context.Context, endpoint string, count int) (sessions []*mcp.ClientSession, closeAll func(), err error) {
	closeAll = func() {
		for _, s := range sessions {
			_ = s.Close()
		}
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 2 * count
	for i := range count {
		client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
		s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint, MaxRetries: -1, DisableStandaloneSSE: true,
			HTTPClient: &http.Client{Transport: asUser{base, fmt.Sprintf("%s-%d", mcpPrefix, i)}}}, &mcp.ClientSessionOptions{ProtocolVersion: p.protocol})
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		sessions = append(sessions, s)
	}
	return sessions, closeAll, nil
}

// asUser says with each request whose it is.
type asUser struct {
	next http.RoundTripper
	chat string
}

// RoundTrip implements http.RoundTripper.
func (a asUser) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Toolgrant-User", mcpPrefix)
	r.Header.Set("Toolgrant-Chat", a.chat)
	return a.next.RoundTrip(r)
}

// callsOf calls a function, and looks at what it answers.
func callsOf(sessions []*mcp.ClientSession, function string) asker {
	return func(worker, _ int) func(context.Context) error {
		params := &mcp.CallToolParams{Name: function, Arguments: map[string]any{"text": "hello"}}
		return func(ctx context.Context) error {
			result, err := sessions[worker].CallTool(ctx, params)
			if err != nil {
				return err
			}
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || result.IsError || text.Text != "hello" {
				return fmt.Errorf("it answers %v", result.Content[0])
			}
			return nil
		}
	}
}

// listsOf lists the functions, and counts them.
func listsOf(sessions []*mcp.ClientSession) asker {
	return func(worker, _ int) func(context.Context) error {
		return func(ctx context.Context) error {
			list, err := sessions[worker].ListTools(ctx, nil)
			if err == nil && (len(list.Tools) < mcpGiven || list.NextCursor != "") {
				err = fmt.Errorf("it lists %d functions", len(list.Tools))
			}
			return err
		}
	}
}
