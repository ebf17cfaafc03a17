package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// freshness is the settings of the command of that name.
type freshness struct {
	world               world
	addresses           []string
	output              string
	rounds              int
	bound, pause, every time.Duration
	limit               time.Duration
	pids                []int
}

func freshnessCommand() *cobra.Command {
	f := &freshness{}
	command := &cobra.Command{
		Use:   "freshness",
		Short: "Measure how soon what one node acknowledged is in the answers of the others",
		Long: "Write to one of several servers of one database, that the world of the same sizes and seed was loaded to, each in turn: " +
			"to a chat, and to the catalogue. From the acknowledgement on, ask the others again and again until they answer with what " +
			"was written; or, with the write's revision as at_least_as_fresh, once. Writes are numbered, and the number is in the " +
			"answers: an answer that is older than one before it from the same server, older than the bound, or older than the " +
			"revision is counted. One chat is made for it and stays; the tool's title is as before at the end.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			var report *freshnessReport
			err := within(command.Context(), f.limit, func(ctx context.Context) (err error) {
				report, err = f.run(ctx, command.ErrOrStderr())
				return err
			})
			if err != nil {
				return err
			}
			return errors.Join(report.print(command.OutOrStdout(), f.output), report.broken())
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&f.addresses, "addr", nil, "the servers' gRPC addresses, two at least")
	flags.Uint64Var(&f.world.seed, "seed", 1, "the seed that the world was loaded with")
	flags.IntVar(&f.rounds, "rounds", 100, "writes of each kind, with and without a revision")
	flags.DurationVar(&f.bound, "bound", time.Second, "how old answers may be: the servers' max_staleness")
	flags.DurationVar(&f.pause, "pause", 300*time.Millisecond, "most time between a round and the next, which is random: servers look for changes in a rhythm")
	flags.DurationVar(&f.every, "every", 2*time.Millisecond, "time between an answer and the next question")
	flags.DurationVar(&f.limit, "timeout", 10*time.Minute, "how long it may take")
	flags.IntSliceVar(&f.pids, "server-pid", nil, "the servers' process numbers, to tell their memory")
	flags.StringVarP(&f.output, "output", "o", outputTable, outputUsage)
	f.world.flags(flags)
	return command
}

// validate names every fault.
func (f *freshness) validate() error {
	faults := []error{f.world.validate(), checkOutput(f.output), checkCount("--addr: how many servers", len(f.addresses), 2, 64),
		checkCount("--rounds", f.rounds, 1, 10_000), checkDuration("--bound", f.bound, time.Millisecond, time.Hour),
		checkDuration("--pause", f.pause, 0, time.Minute), checkDuration("--every", f.every, 0, time.Minute),
		checkDuration("--timeout", f.limit, time.Second, 24*time.Hour)}
	if len(f.addresses) > 0 {
		faults = append(faults, checkAddresses(f.addresses...))
	}
	return errors.Join(faults...)
}

func (f *freshness) run(ctx context.Context, log io.Writer) (*freshnessReport, error) {
	conns, closeAll, err := connect(f.addresses, len(f.addresses))
	if err != nil {
		return nil, err
	}
	defer closeAll()
	s, err := newSubject(ctx, &f.world, conns[0])
	if err != nil {
		return nil, err
	}
	r := &freshnessReport{machine: thisMachine(), Nodes: len(conns), BoundSeconds: f.bound.Seconds()}
	for _, what := range []numbered{{"chat", s.writeChat, s.chatNumber}, {"catalogue", s.writeTitle, s.titleNumber}} {
		nodes := make([]*peer, len(conns))
		for i, conn := range conns {
			nodes[i] = &peer{conn: conn}
		}
		for _, withRevision := range []bool{false, true} {
			series := &freshnessSeries{Write: what.name, WithRevision: withRevision}
			r.Series = append(r.Series, series)
			if err := f.measure(ctx, s, what, nodes, series); err != nil {
				return nil, errors.Join(err, s.title.restore(ctx, conns[0]))
			}
			fmt.Fprintf(log, "%d writes of a %s seen by all\n", f.rounds, what.name)
		}
	}
	if err := s.title.restore(ctx, conns[0]); err != nil {
		return nil, err
	}
	r.ResidentBytes, err = resident(f.pids...)
	return r, err
}

// measure fills in a series.
func (f *freshness) measure(ctx context.Context, s *subject, what numbered, nodes []*peer, series *freshnessSeries) error {
	pauses := f.world.random(kindPause, 0)
	var each, all, writes []time.Duration
	for round := range f.rounds {
		if f.pause > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(pauses.Int64N(int64(f.pause)))):
			}
		}
		// All hold an answer in memory: one that is not held is read from the database, and always fresh.
		for _, n := range nodes {
			if err := n.look(ctx, s, what, ""); err != nil {
				return err
			}
		}
		s.number++
		writer := nodes[round%len(nodes)]
		start := time.Now()
		token, err := what.write(ctx, writer.conn)
		if err != nil {
			return err
		}
		acknowledged := time.Now()
		writes = append(writes, acknowledged.Sub(start))
		if !series.WithRevision {
			token = ""
		}
		asking, askingCtx := errgroup.WithContext(ctx)
		for _, n := range nodes {
			if n != writer {
				asking.Go(func() error { return f.await(askingCtx, n, s, what, token, acknowledged) })
			}
		}
		if err := asking.Wait(); err != nil {
			return err
		}
		slowest := time.Duration(0)
		for _, n := range nodes {
			if n != writer {
				each = append(each, n.delay)
				slowest = max(slowest, n.delay)
			}
		}
		all = append(all, slowest)
	}
	series.Acknowledged, series.Each, series.All = distributionOf(writes), distributionOf(each), distributionOf(all)
	for _, n := range nodes {
		series.Answers += n.Answers
		series.BackInTime += n.BackInTime
		series.BeyondBound += n.BeyondBound
		series.BeforeRevision += n.BeforeRevision
		n.tally = tally{}
	}
	return nil
}

// await asks a node until it answers with the write that was acknowledged; with a revision, the first answer
// has it or is counted.
func (f *freshness) await(ctx context.Context, n *peer, s *subject, what numbered, token string, acknowledged time.Time) error {
	for {
		sent := time.Now()
		if err := n.look(ctx, s, what, token); err != nil {
			return err
		}
		if n.seen >= s.number {
			n.delay = time.Since(acknowledged)
			return nil
		}
		if sent.Sub(acknowledged) > f.bound {
			n.BeyondBound++
		}
		if token != "" {
			n.BeforeRevision++
		}
		time.Sleep(f.every)
	}
}

// freshnessReport is what freshness prints.
type freshnessReport struct {
	machine
	Nodes         int                `json:"nodes"`
	BoundSeconds  float64            `json:"bound_seconds"`
	Series        []*freshnessSeries `json:"series"`
	ResidentBytes int64              `json:"servers_resident_bytes"`
}

// freshnessSeries is what was measured for one kind of write.
type freshnessSeries struct {
	Write        string       `json:"write"`
	WithRevision bool         `json:"with_revision"`
	Acknowledged distribution `json:"acknowledged"` // from the request to its answer
	Each         distribution `json:"each_node"`    // from there until a node answers with it
	All          distribution `json:"all_nodes"`    // until all do
	tally
}

// broken names what the servers promise and did not keep.
func (r *freshnessReport) broken() error {
	var faults []error
	for _, s := range r.Series {
		if s.BackInTime+s.BeyondBound+s.BeforeRevision > 0 {
			faults = append(faults, fmt.Errorf("writes of a %s: of %d answers, %d went back in time, %d were older than %v s, %d older than the revision asked for",
				s.Write, s.Answers, s.BackInTime, s.BeyondBound, r.BoundSeconds, s.BeforeRevision))
		}
	}
	return errors.Join(faults...)
}

func (r *freshnessReport) print(out io.Writer, output string) error {
	f := &findings{head: []any{"NODES", "WRITE", "ASKED WITH", "WRITE P50 MS", "EACH P50 MS", "P99 MS", "MAX MS", "ALL P50 MS", "P99 MS", "MAX MS",
		"ANSWERS", "BACK IN TIME", "TOO OLD", "MEMORY"}}
	for _, s := range r.Series {
		asked := "nothing"
		if s.WithRevision {
			asked = "its revision"
		}
		f.rows = append(f.rows, []any{r.Nodes, s.Write, asked, decimal(s.Acknowledged.P50), decimal(s.Each.P50), decimal(s.Each.P99), decimal(s.Each.Max),
			decimal(s.All.P50), decimal(s.All.P99), decimal(s.All.Max), s.Answers, s.BackInTime, s.BeyondBound + s.BeforeRevision, mebibytes(r.ResidentBytes)})
	}
	f.remarks = []string{fmt.Sprintf("from the write's acknowledgement until another node, or all, answered with it; the bound is %v s; memory is that of all nodes; %v",
		r.BoundSeconds, r.machine)}
	return f.print(out, output, r)
}
