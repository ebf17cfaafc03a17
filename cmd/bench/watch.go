package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
)

// watching is the settings of watch.
type watching struct {
	world                         world
	address, output               string
	watchers, connections, rounds int
	limit                         time.Duration
	pid                           int
}

func watchCommand() *cobra.Command {
	w := &watching{}
	command := &cobra.Command{
		Use:   "watch",
		Short: "Measure how soon many watchers have a change of the catalogue",
		Long: "Open many streams of WatchTools on a server that the world of the same sizes and seed was loaded to. When all have " +
			"their first message, change the title of a core tool, which is in everybody's answer, and measure how long it takes " +
			"from the request until the first, the middle and the last watcher has it. At the end the title is as before.\n\n" +
			"A connection takes a file on either side: what a process may open (ulimit -n) bounds --connections.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := w.validate(); err != nil {
				return err
			}
			var report *watchReport
			err := within(command.Context(), w.limit, func(ctx context.Context) (err error) {
				report, err = w.run(ctx, command.ErrOrStderr())
				return err
			})
			if err != nil {
				return err
			}
			return report.print(command.OutOrStdout(), w.output)
		},
	}
	f := command.Flags()
	f.StringVar(&w.address, "addr", defaultAddress, "the server's gRPC address")
	f.Uint64Var(&w.world.seed, "seed", 1, "the seed that the world was loaded with")
	f.IntVar(&w.watchers, "watchers", 10_000, "watchers, each of any chat of the world")
	f.IntVar(&w.connections, "connections", 4, "connections that the watchers are spread over")
	f.IntVar(&w.rounds, "rounds", 5, "changes, one after the other")
	f.DurationVar(&w.limit, "timeout", 5*time.Minute, "how long it may take")
	f.IntVar(&w.pid, "server-pid", 0, "the server's process number, to tell its memory")
	f.StringVarP(&w.output, "output", "o", outputTable, outputUsage)
	w.world.flags(f)
	return command
}

// validate names every fault.
func (w *watching) validate() error {
	return errors.Join(checkAddresses(w.address), w.world.validate(), checkOutput(w.output),
		checkCount("--watchers", w.watchers, 1, 200_000), checkCount("--connections", w.connections, 1, w.watchers),
		checkCount("--rounds", w.rounds, 1, 1_000), checkDuration("--timeout", w.limit, time.Second, time.Hour))
}

func (w *watching) resident() (int64, error) {
	if w.pid == 0 {
		return 0, nil
	}
	return resident(w.pid)
}

func (w *watching) run(ctx context.Context, log io.Writer) (*watchReport, error) {
	// The writer has a connection of its own, so that it does not wait behind what watchers are sent.
	writer, closeWriter, err := connect([]string{w.address}, 1)
	if err != nil {
		return nil, err
	}
	defer closeWriter()
	title, err := titleOf(ctx, writer[0], w.world.toolID(0)) // which is core
	if err != nil {
		return nil, err
	}
	conns, closeAll, err := connect([]string{w.address}, w.connections, grpc.WithReadBufferSize(4<<10))
	if err != nil {
		return nil, err
	}
	defer closeAll()
	r := &watchReport{machine: thisMachine(), Watchers: w.watchers, Connections: w.connections}
	if r.ResidentBefore, err = w.resident(); err != nil {
		return nil, err
	}
	audience := newAudience(w.watchers)
	start := time.Now()
	stop, err := audience.open(ctx, &w.world, conns)
	if err != nil {
		return nil, err
	}
	defer stop()
	r.OpenSeconds = time.Since(start).Seconds()
	fmt.Fprintf(log, "%d watchers have their first message after %.1f s\n", w.watchers, r.OpenSeconds)
	if r.ResidentOpen, err = w.resident(); err != nil {
		return nil, err
	}
	err = w.measure(ctx, r, audience, title, writer[0], log)
	if err := errors.Join(err, title.restore(ctx, writer[0])); err != nil {
		return nil, err
	}
	r.ResidentAfter, err = w.resident()
	return r, err
}

func (w *watching) measure(ctx context.Context, r *watchReport, audience *audience, title *title, writer *grpc.ClientConn, log io.Writer) error {
	run := time.Now().UnixNano()
	for number := range w.rounds {
		text := fmt.Sprintf("Bench %d.%d.", run, number)
		news := audience.expect(text)
		if _, err := title.set(ctx, writer, text); err != nil {
			return err
		}
		acknowledged := time.Since(news.start)
		delays, err := audience.await(ctx, news)
		if err != nil {
			return err
		}
		round := newWatchRound(acknowledged, delays)
		r.Rounds = append(r.Rounds, round)
		fmt.Fprintf(log, "round %d of %d: the last watcher had it after %.0f ms\n", number+1, w.rounds, round.Last)
	}
	return nil
}

// watchReport is what watch prints. Times are from the request that changes something.
type watchReport struct {
	machine
	Watchers       int          `json:"watchers"`
	Connections    int          `json:"connections"`
	OpenSeconds    float64      `json:"open_seconds"`
	ResidentBefore int64        `json:"server_resident_bytes_before"`
	ResidentOpen   int64        `json:"server_resident_bytes_open"`
	ResidentAfter  int64        `json:"server_resident_bytes_after"`
	Median         watchRound   `json:"median"`
	Rounds         []watchRound `json:"rounds"`
}

// watchRound is when the writer was answered and when watchers had the change.
type watchRound struct {
	Acknowledged float64 `json:"acknowledged_ms"`
	First        float64 `json:"first_ms"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	Last         float64 `json:"last_ms"`
}

func newWatchRound(acknowledged time.Duration, delays []time.Duration) watchRound {
	d := distributionOf(delays)
	return watchRound{milliseconds(acknowledged), d.Min, d.P50, d.P99, d.Max}
}

func (r *watchReport) print(out io.Writer, output string) error {
	of := func(figure func(watchRound) float64) float64 {
		var values []float64
		for _, round := range r.Rounds {
			values = append(values, figure(round))
		}
		return median(values)
	}
	r.Median = watchRound{
		Acknowledged: of(func(w watchRound) float64 { return w.Acknowledged }),
		First:        of(func(w watchRound) float64 { return w.First }),
		P50:          of(func(w watchRound) float64 { return w.P50 }),
		P99:          of(func(w watchRound) float64 { return w.P99 }),
		Last:         of(func(w watchRound) float64 { return w.Last }),
	}
	m := r.Median
	perWatcher := ""
	if r.ResidentOpen > 0 {
		perWatcher = fmt.Sprintf("%.1f KiB", float64(r.ResidentOpen-r.ResidentBefore)/float64(r.Watchers)/(1<<10))
	}
	f := &findings{
		head: []any{"WATCHERS", "CONNECTIONS", "WRITE MS", "FIRST MS", "P50 MS", "P99 MS", "LAST MS", "OPENED IN S", "MEMORY BEFORE", "OPEN", "AFTER", "PER WATCHER"},
		rows: [][]any{{r.Watchers, r.Connections, decimal(m.Acknowledged), decimal(m.First), decimal(m.P50), decimal(m.P99), decimal(m.Last),
			fmt.Sprintf("%.1f", r.OpenSeconds), mebibytes(r.ResidentBefore), mebibytes(r.ResidentOpen), mebibytes(r.ResidentAfter), perWatcher}},
		remarks: []string{fmt.Sprintf("medians of %d changes; %v", len(r.Rounds), r.machine)},
	}
	return f.print(out, output, r)
}
