package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// consumption is the settings of quota.
type consumption struct {
	addresses           []string
	redisURL, output    string
	concurrency         []int
	duration, warmup    time.Duration
	rounds, connections int
	users               int
}

func quotaCommand() *cobra.Command {
	c := &consumption{}
	command := &cobra.Command{
		Use:   "quota",
		Short: "Measure ConsumeQuota with several kinds of rules, beside bare gRPC servers",
		Long: "Measure ConsumeQuota of tools that have one USER rule, a USER, a NODE and a SYSTEM rule, and a SYSTEM rule alone, " +
			"beside a bare gRPC server that runs one script in Redis for each answer (count a key up, and let it expire), and one that " +
			"answers at once. Rounds of all alternate, so that whatever else the machine does hits each; of each figure the median " +
			"of the rounds is told, and of each ratio that of the ratios within a round, with its quartiles. Tools and users for it are written to the server first; their ids begin with bench-quota.\n\n" +
			"The server should use the same Redis.",
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
	c.flags(command.Flags())
	return command
}

func (c *consumption) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&c.addresses, "addr", []string{defaultAddress}, "the server's gRPC address; of several, connections are spread over them")
	f.StringVar(&c.redisURL, "redis-url", "", "the Redis in which the bare server runs a script (required)")
	f.IntSliceVar(&c.concurrency, "concurrency", []int{64}, "how many ask at a time; each number is measured")
	f.DurationVar(&c.duration, "duration", time.Second, "how long a round is")
	f.DurationVar(&c.warmup, "warmup", 200*time.Millisecond, "how long each round asks before it measures")
	f.IntVar(&c.rounds, "rounds", 20, "rounds of each")
	f.IntVar(&c.connections, "connections", 4, "connections to each server")
	f.IntVar(&c.users, "users", 1_000, "users, who are asked for in turn")
	f.StringVarP(&c.output, "output", "o", outputTable, outputUsage)
}

// validate names every fault.
func (c *consumption) validate() error {
	faults := []error{checkAddresses(c.addresses...), checkOutput(c.output),
		checkCount("--concurrency: how many numbers", len(c.concurrency), 1, 16),
		checkDuration("--duration", c.duration, 10*time.Millisecond, 10*time.Minute),
		checkDuration("--warmup", c.warmup, 0, time.Minute),
		checkCount("--rounds", c.rounds, 1, 100),
		checkCount("--connections", c.connections, max(1, len(c.addresses)), 256),
		checkCount("--users", c.users, 1, 1_000_000),
	}
	for _, n := range c.concurrency {
		faults = append(faults, checkCount("--concurrency", n, 1, 4096))
	}
	if c.redisURL == "" {
		faults = append(faults, errors.New("--redis-url: is required"))
	}
	return errors.Join(faults...)
}

// quotaPairs are what is asked of the rules: how much of the throughput they leave.
var quotaPairs = []pair{
	{"user / one script", "user", bareScript, perSecond, ratio},
	{"three / user", "user, node, system", "user", perSecond, ratio},
	{"system / bare gRPC", "system", bareEmpty, perSecond, ratio},
}

// run measures. Where requests failed it returns both an error and the report up to there.
func (c *consumption) run(ctx context.Context, log io.Writer) (r *consumptionReport, err error) {
	conns, closeAll, err := connect(c.addresses, c.connections)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	if err := writeQuotaWorld(ctx, conns[0], c.users); err != nil {
		return nil, err
	}
	draw := newConsumptions(c.users)
	answer, err := exchangeOf(ctx, conns[0], toolgrantv1.QuotaService_ConsumeQuota_FullMethodName, draw.one(ruleUser, 0, 0, 0))
	if err != nil {
		return nil, err
	}
	contenders, stop, err := c.besides(ctx, answer, func(conns []*grpc.ClientConn) asker { return draw.asker(conns, ruleUser) }, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, tool := range quotaTools {
		contenders = append(contenders, contender{tool.name, draw.asker(conns, tool.id)})
	}
	r = &consumptionReport{contenders: "rules", pairs: quotaPairs}
	return r, r.measure(ctx, c, contenders, log)
}
