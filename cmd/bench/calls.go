package main

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/spf13/cobra"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// callsCommand measures AuthorizeCall as quota measures ConsumeQuota.
func callsCommand() *cobra.Command {
	c := &authorization{consumption: &consumption{}}
	command := &cobra.Command{
		Use:   "calls",
		Short: "Measure AuthorizeCall without quotas and with one, beside bare gRPC servers",
		Long: "Measure AuthorizeCall of a tool without quotas, and of one with a USER quota, beside a bare gRPC server that answers at once, " +
			"and one that runs one script in Redis for each answer (count a key up, and let it expire); and AuthorizeCall followed by " +
			"ReportCall, both of which count as one request. Rounds of all alternate; of each figure the median of the rounds is told, " +
			"and of each ratio that of the ratios within a round, with its quartiles. " +
			"Tools, users and an Avatar for it are written to the server first; their ids begin with bench-calls.\n\n" +
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

// authorization is the settings of calls: those of quota.
type authorization struct{ *consumption }

// What is measured of calls.
const (
	callsFree     = "no quota"
	callsCounted  = "a USER quota"
	callsReported = "no quota, reported"
	callsSettled  = "a USER quota, reported"
)

var callsPairs = []pair{
	{"no quota / bare gRPC, throughput", callsFree, bareEmpty, perSecond, ratio},
	{"a USER quota / one script, time", callsCounted, bareScript, p50, ratio},
}

// run measures. Where requests failed it returns both an error and the report up to there.
func (c *authorization) run(ctx context.Context, log io.Writer) (r *consumptionReport, err error) {
	conns, closeAll, err := connect(c.addresses, c.connections)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	if err := writeCallsWorld(ctx, conns[0], c.users); err != nil {
		return nil, err
	}
	draw := newAuthorizations(c.users)
	answer, err := exchangeOf(ctx, conns[0], toolgrantv1.CallService_AuthorizeCall_FullMethodName, draw.one(callFree, 0, 0, 0))
	if err != nil {
		return nil, err
	}
	contenders, stop, err := c.besides(ctx, answer, func(conns []*grpc.ClientConn) asker { return draw.asker(conns, callFree, false) }, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	contenders = append(contenders, contender{callsFree, draw.asker(conns, callFree, false)}, contender{callsCounted, draw.asker(conns, callCounted, false)},
		contender{callsReported, draw.asker(conns, callFree, true)}, contender{callsSettled, draw.asker(conns, callCounted, true)})
	r = &consumptionReport{contenders: "calls", pairs: callsPairs}
	return r, r.measure(ctx, c.consumption, contenders, log)
}

// asker authorizes calls of a function on connections, and reports them if so wanted.
func (c *authorizations) asker(conns []*grpc.ClientConn, function string, report bool) asker {
	return func(worker, run int) func(context.Context) error {
		client, n := toolgrantv1.NewCallServiceClient(conns[worker%len(conns)]), 0
		return func(ctx context.Context) error {
			n++
			request := c.one(function, worker, run, n)
			answer, err := client.AuthorizeCall(ctx, request)
			if err == nil && answer.GetDecision() != toolgrantv1.CallDecision_CALL_DECISION_ALLOW {
				err = errors.New(answer.GetMessage())
			}
			if err != nil || !report {
				return err
			}
			_, err = client.ReportCall(ctx, &toolgrantv1.ReportCallRequest{CallId: request.GetCallId(), Outcome: toolgrantv1.CallOutcome_CALL_OUTCOME_SUCCESS})
			return err
		}
	}
}
