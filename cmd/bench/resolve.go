package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// comparison is the settings of resolve.
type comparison struct {
	world               world
	addresses           []string
	databaseURL, output string
	concurrency         []int
	duration, warmup    time.Duration
	rounds, connections int
	draws               int
	zipf, cold          bool
	fullyConsistent     bool
	pids                []int
}

func resolveCommand() *cobra.Command {
	c := &comparison{}
	command := &cobra.Command{
		Use:   "resolve",
		Short: "Measure ResolveTools on a server with the world loaded, beside a bare gRPC server",
		Long: "Measure ResolveTools on a server that the world of the same sizes and seed was loaded to, beside a bare gRPC server " +
			"that answers the same questions with the same bytes. Rounds of the two alternate, so that whatever else the machine does " +
			"hits both; of each figure the median of the rounds is told.\n\n" +
			"With --cold, questions are drawn out of all that the world has, so that hardly any is answered from memory if the server " +
			"has little (TOOLGRANT_CACHE_BYTES=1MiB is the least). The bare server then answers any question, with bytes of an answer " +
			"that Toolgrant gave to another one; with --database-url, after a SELECT 1: what gRPC and one trip to the database cost.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			report, err := c.run(command.Context(), command.ErrOrStderr())
			if report != nil {
				err = errors.Join(report.print(command.OutOrStdout(), c.output), err)
			}
			return err
		},
	}
	f := command.Flags()
	f.StringSliceVar(&c.addresses, "addr", []string{defaultAddress}, "the server's gRPC address; of several, connections are spread over them")
	f.Uint64Var(&c.world.seed, "seed", 1, "the seed that the world was loaded with")
	f.IntSliceVar(&c.concurrency, "concurrency", []int{16, 64}, "how many ask at a time; each number is measured")
	f.DurationVar(&c.duration, "duration", 10*time.Second, "how long a round is")
	f.DurationVar(&c.warmup, "warmup", time.Second, "how long each round asks before it measures")
	f.IntVar(&c.rounds, "rounds", 3, "rounds per server and concurrency")
	f.IntVar(&c.connections, "connections", 4, "connections to each server")
	f.IntVar(&c.draws, "questions", 2_000, "questions that are drawn; those drawn again are left out")
	f.BoolVar(&c.zipf, "zipf", false, "ask a few questions often and most seldom (Zipf's law, s = 1.1)")
	f.BoolVar(&c.cold, "cold", false, "ask any question that the world has, hardly any of them twice")
	f.BoolVar(&c.fullyConsistent, "fully-consistent", false, "let the server read the database for each answer")
	f.StringVar(&c.databaseURL, "database-url", "", "a PostgreSQL database that the bare server asks SELECT 1 for each answer (password best in PGPASSWORD)")
	f.IntSliceVar(&c.pids, "server-pid", nil, "the servers' process numbers, to tell their memory")
	f.StringVarP(&c.output, "output", "o", outputTable, outputUsage)
	c.world.flags(f)
	return command
}

// validate names every fault.
func (c *comparison) validate() error {
	faults := []error{checkAddresses(c.addresses...), checkOutput(c.output), c.world.validate(),
		checkCount("--concurrency: how many numbers", len(c.concurrency), 1, 16),
		checkDuration("--duration", c.duration, 10*time.Millisecond, 10*time.Minute),
		checkDuration("--warmup", c.warmup, 0, time.Minute),
		checkCount("--rounds", c.rounds, 1, 100),
		checkCount("--connections", c.connections, max(1, len(c.addresses)), 256),
		checkCount("--questions", c.draws, 1, 20_000),
	}
	for _, n := range c.concurrency {
		faults = append(faults, checkCount("--concurrency", n, 1, 4096))
	}
	if c.cold && c.zipf {
		faults = append(faults, errors.New("--cold: is the contrary of --zipf"))
	}
	return errors.Join(faults...)
}

// run measures. Where requests failed it returns both an error and the report up to there.
func (c *comparison) run(ctx context.Context, log io.Writer) (r *report, err error) {
	conns, closeAll, err := connect(c.addresses, c.connections)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	questions := c.world.questions(c.draws)
	for _, q := range questions {
		q.Consistency = c.consistency()
	}
	var exchanges []exchange
	for _, conn := range conns[:len(c.addresses)] { // each server, so that all hold the answers
		if exchanges, err = ask(ctx, conn, questions); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(log, "%d different questions asked\n", len(questions))
	bareAddress, stop, err := startBare(ctx, bareSettings{DatabaseURL: c.databaseURL, AnyQuestion: c.cold}, exchanges, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	bareConns, closeBare, err := connect([]string{bareAddress}, c.connections)
	if err != nil {
		return nil, err
	}
	defer closeBare()

	r = newReport(c, exchanges)
	server, bare := clients(conns), clients(bareConns)
	if err := sameAnswers(ctx, server, bare, questions); err != nil {
		return nil, err
	}
	p := &plan{world: &c.world, questions: questions, zipf: c.zipf, cold: c.cold, consistency: c.consistency(),
		pace: pace{c.warmup, c.duration}}
	for _, n := range c.concurrency {
		result := &result{Concurrency: n}
		r.Results = append(r.Results, result)
		for number := range c.rounds {
			for _, one := range []struct {
				name   string
				target target
				rounds *[]measured
			}{{"toolgrant", server, &result.Server.Rounds}, {"bare gRPC", bare, &result.Bare.Rounds}} {
				m, first := p.round(ctx, p.asking(one.target), n, number)
				*one.rounds = append(*one.rounds, m)
				fmt.Fprintf(log, "%d concurrent, round %d of %d, %s: %.0f requests/s\n", n, number+1, c.rounds, one.name, m.PerSecond)
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if first != nil {
					return r, fmt.Errorf("%s: %d requests failed, the first with: %w", one.name, m.Errors, first)
				}
			}
		}
		if result.ResidentBytes, err = resident(c.pids...); err != nil {
			return r, err
		}
	}
	return r, sameAnswers(ctx, server, bare, questions)
}

func (c *comparison) consistency() *toolgrantv1.Consistency {
	if !c.fullyConsistent {
		return nil
	}
	return &toolgrantv1.Consistency{Requirement: &toolgrantv1.Consistency_FullyConsistent{FullyConsistent: true}}
}

func clients(conns []*grpc.ClientConn) target {
	var t target
	for _, conn := range conns {
		t = append(t, toolgrantv1.NewEntitlementServiceClient(conn))
	}
	return t
}

// ask asks every question once, and keeps what is on the wire.
func ask(ctx context.Context, conn *grpc.ClientConn, questions []*toolgrantv1.ResolveToolsRequest) ([]exchange, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*patience)
	defer cancel()
	exchanges := make([]exchange, len(questions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, q := range questions {
		group.Go(func() error {
			var err error
			if exchanges[i], err = exchangeOf(ctx, conn, toolgrantv1.EntitlementService_ResolveTools_FullMethodName, q); err != nil {
				return fmt.Errorf("chat %s of %s: %w (was the world loaded with these sizes and this seed?)", q.GetChatId(), q.GetUserId(), err)
			}
			return nil
		})
	}
	return exchanges, group.Wait()
}

// sameAnswers fails unless the two servers answer some of the questions alike. Revisions may differ: they
// count the transactions of the whole database, not of what was asked for.
func sameAnswers(ctx context.Context, server, bare target, questions []*toolgrantv1.ResolveToolsRequest) error {
	for _, q := range questions[:min(len(questions), 100)] {
		now, err := server[0].ResolveTools(ctx, q)
		if err != nil {
			return err
		}
		before, err := bare[0].ResolveTools(ctx, q)
		if err != nil {
			return fmt.Errorf("the bare server: %w", err)
		}
		now.Revision, before.Revision = "", ""
		if !proto.Equal(now, before) {
			return fmt.Errorf("the answer for chat %s of %s changed meanwhile: nothing may write while this measures", q.GetChatId(), q.GetUserId())
		}
	}
	return nil
}
