package redisstore

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// What plain.lua decides, take.lua would decide alike: two ledgers, one without them, live through the same.
func TestLedgerDecidesAlike(t *testing.T) {
	quick, slow := onRedis(t), onRedis(t)
	slow.taker = nil
	slow.scripts = newScripts(strings.NewReplacer(text("moving"), "", readsTheTime, toldTheTime))
	slow.set(quick.now)
	first := operation("first", 1, 0, limited("r", quota.UnitCalls, 1, fixed(time.Minute)))
	if d, decided, err := quick.taker.consume(testkit.Context(t), &first); !decided || !d.Admitted || err != nil {
		t.Fatalf("decided %v, %+v, %v", decided, d, err)
	}
	second := operation("second", 1, time.Minute, limited("reserved", quota.UnitCalls, 2, fixed(time.Minute)))
	if d, decided, err := quick.taker.reserve(testkit.Context(t), &second, "{}"); !decided || !d.Admitted || d.States[0].Held != 1 || err != nil {
		t.Fatalf("decided %v, %+v, %v", decided, d, err)
	}
	quick.advance(62 * time.Second)
	for _, again := range []quota.Operation{operation("third", 1, 0, first.Rules...), operation("fourth", 1, time.Minute, first.Rules...)} {
		if d, decided, err := quick.taker.take(quick.taking(testkit.Context(t), &again), &again); !decided || !d.Admitted || d.States[0].Used+d.States[0].Held != 1 || err != nil {
			t.Fatalf("when all came back: decided %v, %+v, %v", decided, d, err)
		}
		quick.advance(62 * time.Second)
	}
	slow.set(quick.now)
	rules := []quota.Limited{limited("minute", quota.UnitCalls, 9, fixed(time.Minute)), limited("day", quota.UnitTokens, 400, daily("")),
		limited("hour", quota.UnitTokens, 200, fixed(time.Hour)), limited("month", quota.UnitCalls, 1000, quota.Window{
			Calendar: &quota.Calendar{Period: quota.PeriodMonth, Zone: "Europe/Berlin"}})}
	rules[2].Shadow = true
	rules[1].OnAbandoned = quota.AbandonedCharge
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "operations")
		for range n {
			count++
			chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(rules), 1, 4, func(r quota.Limited) string { return string(r.ID) }).Draw(t, "rules")
			o := operation(numbered("o", count), rapid.Int64Range(0, 4).Draw(t, "calls"), 0, chosen...)
			if rapid.IntRange(0, 2).Draw(t, "reserves") == 0 {
				o.Lease = 20 * time.Second
			}
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				if a, b := quick.mustTake(o), slow.mustTake(o); !reflect.DeepEqual(a, b) {
					t.Fatalf("%+v\nquick: %+v\nslow:  %+v", o, a, b)
				}
			}
			wait := rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond, 500 * time.Millisecond, 20 * time.Second, 5 * time.Minute, 5 * time.Hour}).Draw(t, "wait")
			quick.advance(wait)
			slow.set(quick.now)
		}
	})
}
