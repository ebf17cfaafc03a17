package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/redisstore"
)

// quotaMemory is the settings of quota-memory.
type quotaMemory struct {
	users, concurrency  int
	archived            bool
	redisServer, output string
}

func quotaMemoryCommand() *cobra.Command {
	m := &quotaMemory{}
	command := &cobra.Command{
		Use:   "quota-memory",
		Short: "Measure what the counters of quotas take in Redis",
		Long: "Measure what the counters of quotas take in Redis: start one, let many users consume a call each, of one USER rule and of a " +
			"USER, a NODE and a SYSTEM rule, and look at its memory. It takes no server: what decides is the same as there, with its " +
			"scripts. --archived adds three USER rules, two of them over a day and a month: those are also in the database of a server. " +
			"Here there is none, but each counter is looked for and marked as if there were, which takes most of the time.\n\n" +
			"Beside the counters, an operation is a key, for 15 minutes.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := errors.Join(checkOutput(m.output), checkCount("--users", m.users, 1, 10_000_000), checkCount("--concurrency", m.concurrency, 1, 4096)); err != nil {
				return err
			}
			report, err := m.run(command.Context(), command.ErrOrStderr())
			if err != nil {
				return err
			}
			return report.print(command.OutOrStdout(), m.output)
		},
	}
	f := command.Flags()
	f.IntVar(&m.users, "users", 1_000_000, "users, each of whom consumes one call")
	f.IntVar(&m.concurrency, "concurrency", 512, "how many consume at a time")
	f.BoolVar(&m.archived, "archived", false, "measure rules over an hour or more, too")
	f.StringVar(&m.redisServer, "redis-server", "", "the program; empty: that on the PATH, or that make setup installed")
	f.StringVarP(&m.output, "output", "o", outputTable, outputUsage)
	return command
}

// memoryCase is rules that apply to each user's call.
type memoryCase struct {
	name  string
	rules []quota.Limited
}

func memoryCases(archived bool) []memoryCase {
	rule := func(name string, scope quota.Scope, window quota.Window) quota.Limited {
		const limit = 1_000_000_000
		return quota.Limited{Own: limit, Rule: quota.Rule{ID: id.Quota("web_search.per_" + name), Scope: scope, Unit: quota.UnitCalls, Limit: limit,
			Window: window, OnOutage: quota.OutageDeny, OnAbandoned: quota.AbandonedGiveBack}}
	}
	half := quota.Window{Fixed: 30 * time.Minute} // so long that nothing comes back while it is filled
	calendar := func(p quota.Period) quota.Window {
		return quota.Window{Calendar: &quota.Calendar{Period: p, Zone: "Asia/Shanghai"}}
	}
	user := rule("half_hour", quota.ScopeUser, half)
	cases := []memoryCase{
		{"user (half an hour)", []quota.Limited{user}},
		{"user, node, system", []quota.Limited{user, rule("node", quota.ScopeNode, half), rule("system", quota.ScopeSystem, half)}},
	}
	if archived {
		cases = append(cases, memoryCase{"user × 3 (half an hour, day, month)", []quota.Limited{
			rule("day", quota.ScopeUser, calendar(quota.PeriodDay)), user, rule("month", quota.ScopeUser, calendar(quota.PeriodMonth))}})
	}
	return cases
}

func (m *quotaMemory) run(ctx context.Context, log io.Writer) (r *memoryReport, err error) {
	r = &memoryReport{machine: thisMachine(), Users: m.users}
	for _, one := range memoryCases(m.archived) {
		result, err := m.measure(ctx, one, log)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		r.Results = append(r.Results, *result)
	}
	return r, nil
}

// measure fills a Redis of its own.
func (m *quotaMemory) measure(ctx context.Context, one memoryCase, log io.Writer) (result *memoryResult, err error) {
	server, err := newRedis(m.redisServer, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	if err := server.start(ctx); err != nil {
		return nil, err
	}
	options, err := redis.ParseURL(server.url())
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	defer client.Close()
	empty, err := memoryOf(ctx, client)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := m.fill(ctx, server.url(), one, log); err != nil {
		return nil, err
	}
	result = &memoryResult{Rules: one.name, FillSeconds: time.Since(begin).Seconds()}
	if result.UsedBytes, err = memoryOf(ctx, client); err != nil {
		return nil, err
	}
	if result.Keys, err = client.DBSize(ctx).Result(); err != nil {
		return nil, err
	}
	result.BytesPerUser = float64(result.UsedBytes-empty) / float64(m.users)
	return result, result.sample(ctx, client, m.users)
}

// fill lets each user consume a call.
func (m *quotaMemory) fill(ctx context.Context, url string, one memoryCase, log io.Writer) error {
	client, err := redisstore.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	ledger := redisstore.NewLedger(client, 1, 10*time.Second, redisstore.Archive(noArchive{}, slog.New(slog.DiscardHandler)))
	slices := redisstore.NewSlices(ledger)
	gate := quota.NewGate(quota.GateOptions{Ledger: ledger, Slices: slices})
	err = timed(log, log, "users, "+one.name, m.users, func(done *atomic.Int64) error {
		group, ctx := errgroup.WithContext(ctx)
		for worker := range m.concurrency {
			group.Go(func() error {
				for i := worker; i < m.users; i += m.concurrency {
					d, err := gate.Take(ctx, quota.Operation{ID: fmt.Sprintf("0194f3c2-5a1e-7c3b-9d55-%012x", i), User: id.User(fmt.Sprintf("user-%016x", i)),
						Tool: "web_search.basic", Rules: one.rules, Cost: quota.Cost{Calls: 1}})
					if err != nil {
						return err
					}
					if !d.Admitted {
						return errors.New("denied, though there is no limit")
					}
					done.Add(1)
				}
				return nil
			})
		}
		return group.Wait()
	})
	slices.Close(ctx)
	return errors.Join(err, ledger.Close(ctx))
}

// noArchive keeps nothing.
type noArchive struct{}

func (noArchive) Keep(context.Context, []quota.ArchivedCounter) error { return nil }

func (noArchive) Kept(context.Context, string) ([]quota.ArchivedCounter, error) { return nil, nil }

func (noArchive) Prune(context.Context, time.Time) error { return nil }

// memoryOf is used_memory, in bytes.
func memoryOf(ctx context.Context, client *redis.Client) (int64, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		}
	}
	return 0, errors.New("redis does not tell its used_memory")
}

// sampledKeys is how many keys are looked at. All are alike.
const sampledKeys = 1000

// sample finds out what single keys take.
func (r *memoryResult) sample(ctx context.Context, client *redis.Client, users int) error {
	sums, counts := map[string]int64{}, map[string]int64{}
	for range sampledKeys {
		key, err := client.RandomKey(ctx).Result()
		if err != nil {
			return err
		}
		bytes, err := client.MemoryUsage(ctx, key, 0).Result() // all fields
		if err != nil {
			return err
		}
		kind := "other"
		switch {
		case strings.Contains(key, "{u:") && strings.Contains(key, "}:c:"):
			kind = "counter"
		case strings.Contains(key, "}:o:"):
			kind = "operation"
		}
		sums[kind] += bytes
		counts[kind]++
	}
	mean := func(kind string) float64 { return ratio(float64(sums[kind]), float64(counts[kind])) }
	r.CounterBytes, r.OperationBytes = mean("counter"), mean("operation")
	counters := float64(r.Keys)/float64(users) - 1
	r.KeyBytes = (r.BytesPerUser - counters*r.CounterBytes - r.OperationBytes) / (counters + 1)
	return nil
}

// memoryReport is what quota-memory prints.
type memoryReport struct {
	machine
	Users   int            `json:"users"`
	Results []memoryResult `json:"results"`
}

// memoryResult is what was measured of some rules.
type memoryResult struct {
	Rules        string  `json:"rules"`
	Keys         int64   `json:"keys"`
	UsedBytes    int64   `json:"used_memory_bytes"`
	BytesPerUser float64 `json:"bytes_per_user"`
	// Means of single keys, as MEMORY USAGE tells, and what each takes besides: its place in Redis's tables.
	CounterBytes   float64 `json:"counter_bytes"`
	OperationBytes float64 `json:"operation_bytes"`
	KeyBytes       float64 `json:"bytes_besides_per_key"`
	FillSeconds    float64 `json:"fill_seconds"`
}

func (r *memoryReport) print(w io.Writer, output string) error {
	f := &findings{head: []any{"rules", "users", "keys", "used_memory", "a user", "a counter", "an operation", "each key besides", "filled in"},
		remarks: []string{fmt.Sprintf("Bytes; an operation is known for 15 minutes. %s.", r.machine)}}
	for _, one := range r.Results {
		f.rows = append(f.rows, []any{one.Rules, r.Users, one.Keys, mebibytes(one.UsedBytes), fmt.Sprintf("%.0f", one.BytesPerUser),
			fmt.Sprintf("%.0f", one.CounterBytes), fmt.Sprintf("%.0f", one.OperationBytes), fmt.Sprintf("%.0f", one.KeyBytes), fmt.Sprintf("%.0f s", one.FillSeconds)})
	}
	return f.print(w, output, r)
}
