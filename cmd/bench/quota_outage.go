package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// quotaOutage is the settings of quota-outage.
type quotaOutage struct {
	addresses              []string
	redisPort              int
	redisServer, output    string
	concurrency, perSecond int
	connections, users     int
	duration               time.Duration
}

func quotaOutageCommand() *cobra.Command {
	o := &quotaOutage{}
	command := &cobra.Command{
		Use:   "quota-outage",
		Short: "Measure how long answers of ConsumeQuota take while Redis is away, and how soon they are as before",
		Long: "Start a Redis, and measure ConsumeQuota of a tool with a USER rule and of one with a SYSTEM rule while it answers, while it " +
			"is paused (SIGSTOP: connections stay, and nobody answers), after it goes on, while it is killed (connections are refused), and " +
			"after it was started again, empty. Requests come at a steady rate, so that those that are answered at once do not crowd " +
			"out the slow ones. Every answer counts, whatever it says, where it came: one that was asked for before Redis was " +
			"paused, too.\n\n" +
			"The server must use this Redis (redis_url: redis://127.0.0.1:PORT/0), and may run before there is one. Tools and users are written " +
			"to it first; their ids begin with bench-quota.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			report, err := o.run(command.Context(), command.ErrOrStderr())
			if err != nil {
				return err
			}
			return report.print(command.OutOrStdout(), o.output)
		},
	}
	f := command.Flags()
	f.StringSliceVar(&o.addresses, "addr", []string{defaultAddress}, "the server's gRPC address; of several, connections are spread over them")
	f.IntVar(&o.redisPort, "redis-port", 0, "where to start the Redis that the server uses (required)")
	f.StringVar(&o.redisServer, "redis-server", "", "the program; empty: that on the PATH, or that make setup installed")
	f.IntVar(&o.concurrency, "concurrency", 64, "how many ask for each tool at a time, at most")
	f.IntVar(&o.perSecond, "rate", 2_000, "requests a second for each tool")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "how long each part is")
	f.IntVar(&o.connections, "connections", 4, "connections to the server")
	f.IntVar(&o.users, "users", 1_000, "users, who consume in turn")
	f.StringVarP(&o.output, "output", "o", outputTable, outputUsage)
	return command
}

// validate names every fault.
func (o *quotaOutage) validate() error {
	return errors.Join(checkAddresses(o.addresses...), checkOutput(o.output),
		checkCount("--redis-port", o.redisPort, 1, 65_535),
		checkCount("--concurrency", o.concurrency, 1, 4096),
		checkCount("--rate", o.perSecond, 1, 1_000_000),
		checkDuration("--duration", o.duration, 10*time.Millisecond, time.Minute),
		checkCount("--connections", o.connections, max(1, len(o.addresses)), 256),
		checkCount("--users", o.users, 1, 1_000_000))
}

// run measures part after part.
func (o *quotaOutage) run(ctx context.Context, log io.Writer) (report *outageReport, err error) {
	server, err := newRedis(o.redisServer, o.redisPort)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	if err := server.start(ctx); err != nil {
		return nil, err
	}
	conns, closeAll, err := connect(o.addresses, o.connections)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	if err := writeQuotaWorld(ctx, conns[0], o.users); err != nil {
		return nil, err
	}
	load := o.load(conns)
	if err := load.awaitAdmitted(ctx); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := load.start(ctx)
	for _, part := range []struct {
		name  string
		begin func() error
	}{
		{"warming up", func() error { return nil }},
		{"Redis answers", func() error { return nil }},
		{"paused", server.pause},
		{"goes on", server.resume},
		{"killed", server.kill},
		{"started again", func() error { return server.start(ctx) }},
	} {
		fmt.Fprintln(log, part.name)
		load.enter(part.name)
		if err := part.begin(); err != nil {
			return nil, err
		}
		select {
		case <-time.After(o.duration):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	load.enter("")
	stop()
	<-ended
	return &outageReport{machine: thisMachine(), PerSecond: o.perSecond, PartSeconds: o.duration.Seconds(), Parts: load.settle()[1:]}, nil
}

// outageLoad asks steadily, and keeps what was answered by the part in which the answer came.
type outageLoad struct {
	tools []quotaTool
	ask   []asker // by tool
	o     *quotaOutage

	mu    sync.Mutex
	parts []*outagePart
}

// outagePart is what was answered in a part.
type outagePart struct {
	Name  string         `json:"part"`
	Tools []*outageTally `json:"tools"`
	begin time.Time
}

// outageTally is what was answered to who asked for a tool. Milliseconds are of all answers.
type outageTally struct {
	Rule        string  `json:"rule"`
	Admitted    int64   `json:"admitted"`
	Unavailable int64   `json:"unavailable"`
	Others      int64   `json:"other_errors"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Max         float64 `json:"max_ms"`
	// When the last one was not admitted, since the part began; 0: all were.
	LastRefused float64 `json:"last_refused_ms"`

	latencies *hdrhistogram.Histogram
}

func (o *quotaOutage) load(conns []*grpc.ClientConn) *outageLoad {
	l, draw := &outageLoad{o: o}, newConsumptions(o.users)
	for _, tool := range quotaTools {
		if tool.id == ruleUser || tool.id == ruleSystem {
			l.tools, l.ask = append(l.tools, tool), append(l.ask, draw.asker(conns, tool.id))
		}
	}
	return l
}

// awaitAdmitted waits until the server has found Redis.
func (l *outageLoad) awaitAdmitted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, ask := range l.ask {
		one := ask(l.o.concurrency, 0)
		for err := one(ctx); err != nil; err = one(ctx) {
			if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
				return fmt.Errorf("%s: %w (does the server use the Redis at --redis-port?)", l.tools[i].name, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// start lets workers ask until ctx ends; then the channel is closed.
func (l *outageLoad) start(ctx context.Context) (ended chan struct{}) {
	ended = make(chan struct{})
	var group sync.WaitGroup
	every := time.Second * time.Duration(l.o.concurrency) / time.Duration(l.o.perSecond) // each worker
	for tool, ask := range l.ask {
		for worker := range l.o.concurrency {
			one := ask(worker, 0)
			group.Go(func() {
				// A request that takes long delays the next one, and takes none away.
				for next := time.Now().Add(every * time.Duration(worker) / time.Duration(l.o.concurrency)); ; next = next.Add(every) {
					select {
					case <-time.After(time.Until(next)):
					case <-ctx.Done():
						return
					}
					begin := time.Now()
					err := one(ctx)
					l.record(tool, time.Now(), time.Since(begin), err)
				}
			})
		}
	}
	go func() { group.Wait(); close(ended) }()
	return ended
}

func (l *outageLoad) enter(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	part := &outagePart{Name: name, begin: time.Now()}
	for _, tool := range l.tools {
		part.Tools = append(part.Tools, &outageTally{Rule: tool.name, latencies: newHistogram()})
	}
	l.parts = append(l.parts, part)
}

func (l *outageLoad) record(tool int, at time.Time, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.parts) == 0 {
		return
	}
	part := l.parts[len(l.parts)-1]
	t := part.Tools[tool]
	switch status.Code(err) {
	case codes.OK:
		t.Admitted++
	case codes.Unavailable:
		t.Unavailable++
	default:
		t.Others++
	}
	if err != nil {
		t.LastRefused = milliseconds(at.Sub(part.begin))
	}
	_ = t.latencies.RecordValue(int64(took)) // none takes ten minutes
}

// settle returns the parts, without the last one, in which the load ended.
func (l *outageLoad) settle() []*outagePart {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := l.parts[:len(l.parts)-1]
	for _, part := range parts {
		for _, t := range part.Tools {
			t.P50, t.P99 = milliseconds(time.Duration(t.latencies.ValueAtQuantile(50))), milliseconds(time.Duration(t.latencies.ValueAtQuantile(99)))
			t.Max = milliseconds(time.Duration(t.latencies.Max()))
		}
	}
	return parts
}

// outageReport is what quota-outage prints.
type outageReport struct {
	machine
	PerSecond   int           `json:"requests_per_second"`
	PartSeconds float64       `json:"part_seconds"`
	Parts       []*outagePart `json:"parts"`
}

func (r *outageReport) print(w io.Writer, output string) error {
	f := &findings{head: []any{"Redis", "rule", "admitted", "unavailable", "other errors", "p50 ms", "p99 ms", "max ms", "last refused after"},
		remarks: []string{fmt.Sprintf("%d requests/s for each tool, parts of %gs; %s.", r.PerSecond, r.PartSeconds, r.machine)}}
	for _, part := range r.Parts {
		for _, t := range part.Tools {
			last := ""
			if t.LastRefused > 0 {
				last = fmt.Sprintf("%.0f ms", t.LastRefused)
			}
			f.rows = append(f.rows, []any{part.Name, t.Rule, t.Admitted, t.Unavailable, t.Others, decimal(t.P50), decimal(t.P99), decimal(t.Max), last})
		}
	}
	return f.print(w, output, r)
}
