package main

import (
	"strconv"
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestMemoryOfCountersIsMeasured(t *testing.T) {
	got := &memoryReport{}
	measureAnything(t, got, "quota-memory", "--users=500", "--concurrency=20", "--archived")
	if got.Users != 500 || len(got.Results) != 3 {
		t.Fatalf("got %+v", got)
	}
	for i, perUser := range []int64{1, 1, 3} { // counters, and an operation; and what a SYSTEM rule and its slice have
		r := got.Results[i]
		if r.Keys < 500*(perUser+1) || r.Keys > 500*(perUser+1)+3 || r.UsedBytes == 0 || r.CounterBytes < 100 || r.OperationBytes < 100 ||
			r.BytesPerUser < float64(perUser)*r.CounterBytes+r.OperationBytes {
			t.Errorf("got %+v", r)
		}
	}
}

func TestAnOutageIsMeasured(t *testing.T) {
	free, err := newRedis("", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = free.close() })
	address := node.Start(t, testkit.Database(t), node.Options{Redis: free.url()}).Address
	got := &outageReport{}
	measureAnything(t, got, "quota-outage", "--addr", address, "--redis-port", strconv.Itoa(free.port), "--duration=400ms", "--concurrency=8", "--rate=400", "--users=3")
	names := []string{"Redis answers", "paused", "goes on", "killed", "started again"}
	if len(got.Parts) != len(names) {
		t.Fatalf("got %+v", got)
	}
	for i, part := range got.Parts {
		if part.Name != names[i] || len(part.Tools) != 2 {
			t.Errorf("got %+v", part)
		}
		for _, tally := range part.Tools {
			if tally.Others > 0 || tally.P50 > tally.P99 || tally.P99 > tally.Max || (tally.LastRefused > 0) != (tally.Unavailable > 0) {
				t.Errorf("%s: %+v", part.Name, tally)
			}
		}
	}
}

// Each concurrency and each round asks for operations of its own: a repetition would be answered without being counted.
func TestConsumptionIsMeasured(t *testing.T) {
	redis := testkit.Redis(t)
	address := node.Start(t, testkit.Database(t), node.Options{Redis: redis}).Address
	for _, command := range []string{"quota", "calls"} {
		got := &consumptionReport{}
		measureAnything(t, got, command, "--addr", address, "--redis-url", redis, "--users=20", "--concurrency=2,5", "--duration=20ms", "--warmup=5ms", "--rounds=2")
		if len(got.Results) != 2 {
			t.Fatalf("%s: got %+v", command, got)
		}
		for _, one := range got.Results {
			if len(one.Contenders) != 6 || len(one.Comparisons) < 2 {
				t.Errorf("%s: got %+v", command, one)
			}
			for _, c := range one.Contenders {
				if len(c.Rounds) != 2 || c.Median.Requests == 0 || c.Median.Errors > 0 {
					t.Errorf("%s, %s: %+v", command, c.Name, c.Median)
				}
			}
			for _, c := range one.Comparisons {
				if c.Median <= 0 || c.LowerQuartile > c.Median || c.Median > c.UpperQuartile {
					t.Errorf("%s: %+v", command, c)
				}
			}
		}
	}
}
