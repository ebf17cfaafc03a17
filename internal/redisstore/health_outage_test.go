package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// soon is far above what a call that waits for nobody takes on a busy machine, and far below waiting for Redis.
const soon = 5 * time.Second

// While Redis is away a node opens, probes and closes alone, and nobody waits. Afterwards the others hear of it.
func TestHealthWhileRedisIsAway(t *testing.T) {
	outages := map[string]struct{ begin, end func(*testkit.PrivateRedis) }{
		"killed": {(*testkit.PrivateRedis).Kill, (*testkit.PrivateRedis).Start},
		"paused": {(*testkit.PrivateRedis).Pause, (*testkit.PrivateRedis).Resume},
	}
	for how, outage := range outages {
		t.Run(how, func(t *testing.T) {
			server := testkit.RedisServer(t)
			o := boardOptions{timeout: 200 * time.Millisecond}
			a, b := newBoard(t, server.URL, o), newBoard(t, server.URL, o)
			a.run()
			b.run()
			a.report(search, "", health.Timeout)
			b.report(weather, "", health.Error)
			await(t, "both know both", func() bool {
				return a.record(weather) == b.record(weather) && a.record(search) == b.record(search) && len(a.List()) == 2
			})

			outage.begin(server)
			begin := time.Now()
			a.report(search, "", health.Timeout, health.Timeout)
			if a.state(search) == health.Closed {
				t.Errorf("one failure is known, two came: %+v", a.record(search))
			}
			a.coolDown(search)
			if c := a.Claim(testkit.Context(t), search, "p"); c.State != health.HalfOpen {
				t.Errorf("no probe: %+v", c)
			}
			if c := a.Claim(testkit.Context(t), search, "q"); c.State != health.Open {
				t.Errorf("a second probe: %+v", c)
			}
			for i := range 20_000 {
				a.report(health.Subject{Tool: id.Tool(fmt.Sprintf("t%d", i%100))}, "", health.Success)
			}
			if d := time.Since(begin); d > soon {
				t.Errorf("it took %v", d)
			}
			await(t, "it is known that Redis is away", func() bool { return a.Stats().Away })
			if !a.List()[0].Local {
				t.Error("nobody is told")
			}
			outage.end(server)
			await(t, "the other knows of the probe", func() bool { return b.record(search).Probe == "p" })
			b.report(search, "p", health.Success)
			a.await(search, health.Closed)
			b.await(search, health.Closed)
			await(t, "they agree on all", func() bool {
				x, y := a.List(), b.List()
				for i := range min(len(x), len(y)) {
					if x[i] != y[i] {
						return false
					}
				}
				return len(x) == 102 && len(y) == 102
			})
			if s := a.Stats(); s.Away || s.Pending > 0 || s.Lost > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Two nodes come to different ends while they can't tell each other: the worse counts, and a probe finds out.
func TestHealthNodesThatDisagreedAreJoined(t *testing.T) {
	server := testkit.RedisServer(t)
	o := boardOptions{timeout: time.Second}
	a, b := newBoard(t, server.URL, o), newBoard(t, server.URL, o)
	a.sync()
	b.sync()
	server.Kill()
	a.report(search, "", health.Timeout, health.Timeout, health.Timeout)
	b.report(search, "", health.Success)
	a.sync()
	b.sync()
	a.coolDown(search)
	if c := a.Claim(testkit.Context(t), search, "p"); c.State != health.HalfOpen { // no report tells this
		t.Fatalf("%+v", c)
	}
	server.Start()
	for range 3 { // connections that broke are noticed one by one
		b.sync()
		a.sync()
	}
	b.sync()
	if a.record(search) != b.record(search) || b.record(search).Probe != "p" {
		t.Errorf("they disagree:\n%+v\n%+v", a.record(search), b.record(search))
	}
}

// A Redis that lost all gets it back from the nodes, and nobody forgets what is put aside.
func TestHealthWhenRedisForgets(t *testing.T) {
	server := testkit.RedisServer(t)
	client := openFor(t, server.URL)
	policy := health.Policy{FailThreshold: 2, Cooldown: time.Hour, ProbeLease: time.Hour}
	a, b := newBoard(t, server.URL, boardOptions{policy: policy}), newBoard(t, server.URL, boardOptions{policy: policy})
	a.sync()
	a.report(search, "", health.Timeout, health.Timeout)
	a.sync()
	b.sync()
	was := b.record(search)
	if err := client.FlushAll(testkit.Context(t)).Err(); err != nil {
		t.Fatal(err)
	}
	b.report(weather, "", health.Timeout)
	b.sync()
	a.sync()
	b.sync()
	third := newBoard(t, server.URL, boardOptions{policy: policy})
	third.sync()
	for i, n := range []board{a, b, third} {
		if got := n.record(search); got != was {
			t.Errorf("node %d: %+v, was %+v", i, got, was)
		}
		if got := n.record(weather).Failures; got != 1 {
			t.Errorf("node %d: %d failures", i, got)
		}
	}
	// A replica that took over may lack some records, or the last writes.
	keys := NewHealth(client, 1, time.Second).keys
	for _, lose := range []func(){
		func() {
			client.HDel(testkit.Context(t), keys[0], field(search))
			client.ZRem(testkit.Context(t), keys[1], field(search))
		},
		func() { client.HSet(testkit.Context(t), keys[0], "version", 1) },
	} {
		lose()
		before := a.record(search).Score(a.Now())
		a.report(search, "", health.Error)
		a.sync()
		b.sync()
		a.sync()
		if x, y := a.record(search), b.record(search); x != y || x.Opened != 1 || x.Score(a.Now()) >= before {
			t.Errorf("they disagree:\n%+v\n%+v", x, y)
		}
	}
}

// An exchange whose answer was lost, but not the exchange, counts once.
func TestHealthLostAnswers(t *testing.T) {
	server := testkit.RedisServer(t)
	policy := health.Policy{FailThreshold: 1_000, Cooldown: time.Hour, ProbeLease: time.Hour}
	a := newBoard(t, server.URL, boardOptions{policy: policy, timeout: 100 * time.Millisecond})
	sent := 0
	for range 5 {
		await(t, "it is told", func() bool { a.sync(); s := a.Stats(); return !s.Away && s.Pending == 0 })
		server.Pause()
		for range 3 {
			a.report(search, "", health.Timeout)
			sent++
			a.sync() // Redis runs it when it goes on
		}
		server.Resume()
	}
	await(t, "it is told", func() bool { a.sync(); s := a.Stats(); return !s.Away && s.Pending == 0 })
	b := newBoard(t, server.URL, boardOptions{policy: policy})
	b.sync()
	if x, y := a.record(search).Failures, b.record(search).Failures; x != sent || y != sent {
		t.Errorf("%d failures here, %d there; %d were reported", x, y, sent)
	}
}

// No goroutine waits for a Redis that does not answer when the board has ended, and ending does not wait for it, either.
func TestHealthEndsWhileRedisIsPaused(t *testing.T) {
	server := testkit.RedisServer(t)
	a := newBoard(t, server.URL, boardOptions{timeout: 200 * time.Millisecond})
	stop := a.run()
	a.report(search, "", health.Timeout)
	await(t, "it is told", func() bool { return a.Stats().Exchanges > 0 && a.Stats().Pending == 0 })
	server.Pause()
	defer server.Resume()
	a.report(search, "", health.Timeout)
	await(t, "it is away", func() bool { return a.Stats().Away })
	begin := time.Now()
	stop()
	if d := time.Since(begin); d > soon {
		t.Errorf("it took %v", d)
	}
}
