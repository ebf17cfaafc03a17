package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
			"of the rounds is told. Tools and users for it are written to the server first; their ids begin with bench-quota.\n\n" +
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
	f.DurationVar(&c.duration, "duration", 5*time.Second, "how long a round is")
	f.DurationVar(&c.warmup, "warmup", time.Second, "how long each round asks before it measures")
	f.IntVar(&c.rounds, "rounds", 3, "rounds of each")
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

// contender is one of those that are measured in turn.
type contender struct {
	name string
	ask  asker
}

// run measures. Where requests failed it returns both an error and the report up to there.
func (c *consumption) run(ctx context.Context, log io.Writer) (r *quotaReport, err error) {
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
	var contenders []contender
	for _, bare := range []struct {
		name     string
		settings bareSettings
	}{{bareScript, bareSettings{RedisURL: c.redisURL, Keys: c.users, AnyQuestion: true}}, {bareEmpty, bareSettings{AnyQuestion: true}}} {
		address, stop, err := startBare(ctx, bare.settings, []exchange{answer}, log)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		bareConns, closeBare, err := connect([]string{address}, c.connections)
		if err != nil {
			return nil, err
		}
		defer closeBare()
		contenders = append(contenders, contender{bare.name, draw.asker(bareConns, ruleUser)})
	}
	for _, tool := range quotaTools {
		contenders = append(contenders, contender{tool.name, draw.asker(conns, tool.id)})
	}

	r = &quotaReport{machine: thisMachine(), Users: c.users, Connections: c.connections, RoundSeconds: c.duration.Seconds()}
	for _, n := range c.concurrency {
		result := newQuotaResult(n, contenders)
		r.Results = append(r.Results, result)
		for number := range c.rounds {
			for i, one := range contenders {
				m, first := pace{c.warmup, c.duration}.round(ctx, one.ask, n, number)
				result.Contenders[i].Rounds = append(result.Contenders[i].Rounds, m)
				fmt.Fprintf(log, "%d concurrent, round %d of %d, %s: %.0f requests/s\n", n, number+1, c.rounds, one.name, m.PerSecond)
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if first != nil {
					return r, fmt.Errorf("%s: %d requests failed, the first with: %w", one.name, m.Errors, first)
				}
			}
		}
	}
	return r, nil
}
