package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/discovery"
)

// searching is the settings of search.
type searching struct {
	address, databaseURL, output string
	tools, past                  int
	concurrency                  []int
	pace
	rounds int
	out    io.Writer
}

func searchCommand() *cobra.Command {
	s := &searching{}
	command := &cobra.Command{
		Use:   "search",
		Short: "Measure SearchTools on a server, among invented tools with past requests",
		Long: "Measure SearchTools on a server: write tools of invented words to it, frequent and rare ones as in a language, and past " +
			"requests for them to its database, wait until the server has learned from these, and search. What is written depends on the " +
			"numbers only, so it can be repeated; it is meant for a server of its own, since what was written stays.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := s.validate(); err != nil {
				return err
			}
			s.out = command.OutOrStdout()
			return within(command.Context(), 10*time.Minute, s.run)
		},
	}
	f := command.Flags()
	f.StringVar(&s.address, "addr", defaultAddress, "the server's gRPC address")
	f.StringVar(&s.databaseURL, "database-url", "", "the server's database, for past requests (required with --past; password best in PGPASSWORD)")
	f.IntVar(&s.tools, "tools", 5_000, "tools")
	f.IntVar(&s.past, "past", 20_000, "past requests")
	f.IntSliceVar(&s.concurrency, "concurrency", []int{1, 8, 64}, "how many search at a time; each number is measured")
	f.DurationVar(&s.duration, "duration", 5*time.Second, "how long a round is")
	f.DurationVar(&s.warmup, "warmup", time.Second, "how long each round searches before it measures")
	f.IntVar(&s.rounds, "rounds", 3, "rounds per concurrency, of which the median is told")
	f.StringVarP(&s.output, "output", "o", outputTable, outputUsage)
	return command
}

// validate names every fault.
func (s *searching) validate() error {
	faults := []error{checkAddresses(s.address), checkOutput(s.output), checkCount("--tools", s.tools, 16, 100_000), checkCount("--past", s.past, 0, 131_072),
		checkCount("--concurrency: how many numbers", len(s.concurrency), 1, 16), checkDuration("--duration", s.duration, 10*time.Millisecond, 10*time.Minute),
		checkDuration("--warmup", s.warmup, 0, time.Minute), checkCount("--rounds", s.rounds, 1, 100)}
	for _, n := range s.concurrency {
		faults = append(faults, checkCount("--concurrency", n, 1, 4096))
	}
	if s.past > 0 && s.databaseURL == "" {
		faults = append(faults, errors.New("--database-url: must be given with --past"))
	}
	return errors.Join(faults...)
}

// babble makes invented texts.
type babble struct {
	words    []string
	random   *rand.Rand
	frequent *rand.Zipf
}

func newBabble() *babble {
	b := &babble{random: rand.New(rand.NewPCG(1, 2)), words: make([]string, 8000)}
	syllables := strings.Fields("ba ce di fo gu ka le mi no pu ra se ti vo zu sha the tri plo gan")
	for i := range b.words {
		for range 2 + b.random.IntN(3) {
			b.words[i] += syllables[b.random.IntN(len(syllables))]
		}
	}
	b.frequent = rand.NewZipf(b.random, 1.1, 8, uint64(len(b.words)-1))
	return b
}

func (b *babble) text(words int) string {
	list := make([]string, words)
	for i := range list {
		list[i] = b.words[b.frequent.Uint64()]
	}
	return strings.Join(list, " ")
}

// about is a request that has some words of a tool.
func (b *babble) about(t *toolgrantv1.Tool) string {
	words := strings.Fields(t.GetDescription())
	return b.text(8) + " " + words[b.random.IntN(len(words))] + " " + words[b.random.IntN(len(words))]
}

const searchUser = "bench.searcher"

func (s *searching) run(ctx context.Context) error {
	conns, closeAll, err := connect([]string{s.address}, 4)
	if err != nil {
		return err
	}
	defer closeAll()
	b := newBabble()
	m := &toolgrantv1.Manifest{ToolTypes: []*toolgrantv1.ToolType{{ToolTypeId: "bench.plain", Source: toolgrantv1.ToolSource_TOOL_SOURCE_NATIVE}},
		DeviceTypes: []*toolgrantv1.DeviceType{{DeviceTypeId: "bench.phone"}},
		Users:       []*toolgrantv1.User{{UserId: searchUser, Devices: []*toolgrantv1.Device{{DeviceId: "bench.phone", DeviceTypeId: "bench.phone"}}}}}
	for i := range s.tools {
		t := &toolgrantv1.Tool{ToolId: fmt.Sprintf("bench.%05d", i), ToolTypeId: "bench.plain", Name: strings.ReplaceAll(b.text(3), " ", "_"), Description: b.text(50)}
		m.Tools, m.DeviceTypes[0].ToolIds = append(m.Tools, t), append(m.DeviceTypes[0].ToolIds, t.GetToolId())
	}
	if _, err := toolgrantv1.NewAdminServiceClient(conns[0]).ApplyManifest(ctx, &toolgrantv1.ApplyManifestRequest{Manifest: m}); err != nil {
		return fmt.Errorf("ApplyManifest: %w", err)
	}
	if err := s.remember(ctx, b, m.GetTools()); err != nil {
		return fmt.Errorf("past requests: %w", err)
	}
	queries := make([]string, 500)
	for i := range queries {
		queries[i] = b.about(m.GetTools()[b.random.IntN(s.tools)])
	}
	search := func(client toolgrantv1.DiscoveryServiceClient, i int, explain bool) (*toolgrantv1.SearchToolsResponse, error) {
		return client.SearchTools(ctx, &toolgrantv1.SearchToolsRequest{ChatId: fmt.Sprintf("bench.%d", i%64), UserId: searchUser, Query: queries[i%len(queries)], Explain: explain,
			Surface: &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: "bench.phone"}}})
	}
	clients := make([]toolgrantv1.DiscoveryServiceClient, len(conns))
	for i, conn := range conns {
		clients[i] = toolgrantv1.NewDiscoveryServiceClient(conn)
	}
	learned := func() (bool, error) {
		for i := range 20 {
			p, err := search(clients[0], i, true)
			if err != nil {
				return false, err
			}
			for _, match := range p.GetMatches() {
				if match.GetFeatures().GetHistoryShare() > 0 {
					return true, nil
				}
			}
		}
		return false, nil
	}
	for s.past > 0 {
		if ok, err := learned(); ok || err != nil {
			if err != nil {
				return fmt.Errorf("SearchTools: %w", err)
			}
			break
		}
		select {
		case <-ctx.Done():
			return errors.New("the server has not learned from the past requests: is --database-url its database?")
		case <-time.After(time.Second):
		}
	}
	return s.measure(ctx, func(worker, run int) func(context.Context) error {
		i := run<<8 + 37*worker
		return func(context.Context) error {
			i++
			_, err := search(clients[worker%len(clients)], i, false)
			return err
		}
	})
}

// remember writes past requests, of 500 users.
func (s *searching) remember(ctx context.Context, b *babble, tools []*toolgrantv1.Tool) error {
	if s.past == 0 {
		return nil
	}
	conn, err := pgx.Connect(ctx, s.databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	now := time.Now()
	r := rows{}
	for i := range s.past {
		tool := tools[b.random.IntN(len(tools))]
		features := discovery.FeaturesOf(b.about(tool))
		numbers := make([]int64, len(features))
		for j, f := range features {
			numbers[j] = int64(f)
		}
		r.add(fmt.Sprintf("bench.%06d", i), int64(0), fmt.Sprintf("bench.u%d", i%500), []string{}, tool.GetToolId(), false, numbers, now)
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM search_uses WHERE call_id LIKE 'bench.%'"); err != nil {
			return err
		}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"search_uses"}, []string{"call_id", "search_id", "user_id", "group_ids", "tool_id", "private", "features", "report_time"}, pgx.CopyFromRows(r.values))
		return err
	})
}

func (s *searching) measure(ctx context.Context, ask asker) error {
	report := newDiscoveryReport("concurrent", "searches/s", "p50 ms", "p95 ms", "p99 ms", "errors")
	for _, concurrent := range s.concurrency {
		all := make([]measured, s.rounds)
		for round := range all {
			var err error
			if all[round], err = s.round(ctx, ask, concurrent, round); err != nil {
				return fmt.Errorf("SearchTools: %w", err)
			}
		}
		m := medianOf(all)
		report.add(concurrent, fmt.Sprintf("%.0f", m.PerSecond), decimal(m.P50), decimal(m.P95), decimal(m.P99), m.Errors)
	}
	report.Remarks = append(report.Remarks, fmt.Sprintf("%d tools of 50 words, %d past requests, requests of 10 words; medians of %d rounds of %v.", s.tools, s.past, s.rounds, s.duration))
	return report.print(s.out, s.output)
}
