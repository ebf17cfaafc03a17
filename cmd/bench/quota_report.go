package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc"
)

// consumptionReport is what quota and calls print.
type consumptionReport struct {
	machine
	Users        int        `json:"users"`
	Connections  int        `json:"connections"`
	RoundSeconds float64    `json:"round_seconds"`
	Results      []*contest `json:"results"`
	contenders   string     // what they are called
	pairs        []pair
}

// besides starts two bare servers, one that answers at once and one that runs a script, and returns who asks them and
// what stops them.
func (c *consumption) besides(ctx context.Context, answer exchange, ask func([]*grpc.ClientConn) asker, log io.Writer) (contenders []contender, stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for _, one := range slices.Backward(stops) { // connections before their server
			errs = append(errs, one())
		}
		return errors.Join(errs...)
	}
	for _, bare := range []struct {
		name     string
		settings bareSettings
	}{{bareEmpty, bareSettings{AnyQuestion: true}}, {bareScript, bareSettings{RedisURL: c.redisURL, Keys: c.users, AnyQuestion: true}}} {
		address, end, err := startBare(ctx, bare.settings, []exchange{answer}, log)
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		stops = append(stops, end)
		conns, closeAll, err := connect([]string{address}, c.connections)
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		stops = append(stops, func() error { closeAll(); return nil })
		contenders = append(contenders, contender{bare.name, ask(conns)})
	}
	return contenders, stop, nil
}

// measure fills the report. Where requests failed it has what was measured up to there.
func (r *consumptionReport) measure(ctx context.Context, c *consumption, contenders []contender, log io.Writer) error {
	r.machine, r.Users, r.Connections, r.RoundSeconds = thisMachine(), c.users, c.connections, c.duration.Seconds()
	for k, n := range c.concurrency {
		result := &contest{Concurrency: n}
		r.Results = append(r.Results, result)
		if err := result.run(ctx, pace{c.warmup, c.duration}, contenders, c.rounds, k*c.rounds*len(contenders), log); err != nil {
			return err
		}
	}
	return nil
}

func (r *consumptionReport) print(w io.Writer, output string) error {
	f := tableOf(r.Results, r.contenders, r.pairs)
	f.remarks = []string{fmt.Sprintf("%d users, %d connections, rounds of %gs; %s; %s.", r.Users, r.Connections, r.RoundSeconds, medians, r.machine)}
	return f.print(w, output, r)
}
