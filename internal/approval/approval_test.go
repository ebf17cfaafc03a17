package approval_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

var (
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	call = approval.Call{ID: "call", Chat: "chat", User: "ann", Tool: "shell", Function: "run", Arguments: []byte(`{"rm":"/"}`)}
)

func asked() approval.Approval {
	return approval.Approval{Request: approval.Ask(call, noon, 15*time.Minute)}
}

func decided(t *testing.T, d approval.Decision) approval.Approval {
	t.Helper()
	a := asked()
	if d.Time.IsZero() {
		d.Time = noon
	}
	made, err := a.Decide(d)
	if err != nil || made == nil {
		t.Fatalf("got %v, %v", made, err)
	}
	a.Decision = made
	return a
}

func TestHowAnApprovalStands(t *testing.T) {
	grant := approval.Decision{Approve: true, Scope: approval.Once, By: "bob"}
	used := decided(t, grant)
	used.Use = noon
	revoked := decided(t, grant)
	revoked.Revocation = &approval.Revocation{Time: noon}
	for name, c := range map[string]struct {
		a     approval.Approval
		after time.Duration
		want  approval.State
	}{
		"asked":                    {asked(), 0, approval.Pending},
		"asked, at the last":       {asked(), 15*time.Minute - 1, approval.Pending},
		"asked, in vain":           {asked(), 15 * time.Minute, approval.Expired},
		"granted":                  {decided(t, grant), 10*time.Minute - 1, approval.Approved},
		"granted, run out":         {decided(t, grant), 10 * time.Minute, approval.Expired},
		"granted for the chat":     {decided(t, approval.Decision{Approve: true, Scope: approval.Chat}), 1e6 * time.Hour, approval.Approved},
		"refused":                  {decided(t, approval.Decision{}), time.Hour, approval.Denied},
		"granted, used":            {used, time.Hour, approval.Used},
		"granted, taken back":      {revoked, 0, approval.Revoked},
		"taken back, then run out": {revoked, time.Hour, approval.Revoked},
	} {
		if got := c.a.State(noon.Add(c.after)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestWhatAGrantIsGoodFor(t *testing.T) {
	once := decided(t, approval.Decision{Approve: true, Scope: approval.Once})
	chat := decided(t, approval.Decision{Approve: true, Scope: approval.Chat})
	until := decided(t, approval.Decision{Approve: true, Scope: approval.Until, Expire: noon.Add(time.Hour)})
	for name, c := range map[string]struct {
		change func(*approval.Call)
		want   string // of once, chat, until
	}{
		"the same call":    {func(*approval.Call) {}, "OCU"},
		"other arguments":  {func(c *approval.Call) { c.Arguments = []byte(`{"rm":"/home"}`) }, "CU"},
		"no arguments":     {func(c *approval.Call) { c.Arguments = nil }, "CU"},
		"another call":     {func(c *approval.Call) { c.ID = "other" }, "CU"},
		"another chat":     {func(c *approval.Call) { c.ID, c.Chat = "other", "other" }, "U"},
		"another function": {func(c *approval.Call) { c.Function = "other" }, ""},
		"another tool":     {func(c *approval.Call) { c.Tool = "other" }, ""},
		"another user":     {func(c *approval.Call) { c.User = "other" }, ""},
	} {
		other, got := call, ""
		c.change(&other)
		for _, a := range []struct {
			letter string
			approval.Approval
		}{{"O", once}, {"C", chat}, {"U", until}} {
			if a.Covers(&other, noon.Add(time.Minute)) {
				got += a.letter
			}
		}
		if got != c.want {
			t.Errorf("%s: good are %q, want %q", name, got, c.want)
		}
	}
	all := []approval.Approval{once, chat, until}
	for after, want := range map[time.Duration]id.Approval{0: once.ID, 11 * time.Minute: chat.ID} {
		if found := approval.Find(all, &call, noon.Add(after)); found == nil || found.ID != want {
			t.Errorf("after %s: got %v", after, found)
		}
	}
	if found := approval.Find([]approval.Approval{asked(), decided(t, approval.Decision{})}, &call, noon); found != nil {
		t.Errorf("nobody granted %v", found)
	}
}

func TestADecisionIsMadeOnce(t *testing.T) {
	a := decided(t, approval.Decision{Approve: true, Scope: approval.Once, By: "bob", Reason: "fine"})
	// The same, later, by somebody else, with other words.
	if made, err := a.Decide(approval.Decision{Approve: true, Scope: approval.Once, By: "chen", Time: noon.Add(time.Hour)}); made != nil || err != nil {
		t.Errorf("got %v, %v", made, err)
	}
	for _, d := range []approval.Decision{{}, {Approve: true, Scope: approval.Chat}, {Approve: true, Scope: approval.Once, Expire: noon.Add(time.Minute)}} {
		d.Time = noon.Add(time.Second)
		_, err := a.Decide(d)
		if f, ok := fault.As(err); !ok || f.Reason != fault.ReasonApprovalDecided || !strings.Contains(f.Message, "decided by bob at 2026-05-01T12:00:00Z") {
			t.Errorf("%+v: got %v", d, err)
		}
	}
	late := asked()
	if _, err := late.Decide(approval.Decision{Time: noon.Add(15 * time.Minute)}); err == nil {
		t.Error("it was decided when nobody waited any more")
	}
	pending := asked()
	for _, expire := range []time.Time{noon, noon.Add(367 * 24 * time.Hour)} {
		if _, err := pending.Decide(approval.Decision{Approve: true, Scope: approval.Until, Expire: expire, Time: noon}); err == nil {
			t.Errorf("a grant until %s was accepted", expire)
		}
	}
}

// Whatever is done to an approval in whatever order: it is decided once, only a grant is used or taken back, and one that
// is over stays as it is.
func TestStepsOfAnApproval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := asked()
		now, was := noon, approval.Pending
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(9*time.Minute)).Draw(t, "pause")))
			state := a.State(now)
			if over := was != approval.Pending && was != approval.Approved; over && state != was {
				t.Fatalf("it was %s, and became %s", was, state)
			}
			switch rapid.SampledFrom([]string{"decide", "revoke", "use"}).Draw(t, "step") {
			case "decide":
				d := approval.Decision{Approve: rapid.Bool().Draw(t, "approve"), Time: now}
				if d.Approve {
					d.Scope = rapid.SampledFrom([]approval.Scope{approval.Once, approval.Chat}).Draw(t, "scope")
				}
				made, err := a.Decide(d)
				if (made != nil) != (state == approval.Pending) || (state == approval.Pending && err != nil) {
					t.Fatalf("%s: got %v, %v", state, made, err)
				}
				if made != nil {
					a.Decision = made
				}
			case "revoke":
				made, err := a.Revoke(approval.Revocation{Time: now})
				if (made != nil) != (state == approval.Approved) || (err == nil) != (state == approval.Approved || state == approval.Revoked) {
					t.Fatalf("%s: got %v, %v", state, made, err)
				}
				if made != nil {
					a.Revocation = made
				}
			case "use":
				spent, err := a.Spend(now)
				if covers := a.Covers(&call, now); covers != (err == nil) {
					t.Fatalf("%s: it covers the call: %t, and letting it through: %v", state, covers, err)
				}
				if spent {
					a.Use = now
				}
			}
			was = a.State(now)
		}
	})
}

func TestArgumentsAreCutBetweenCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := call
		c.Arguments = []byte(strings.Repeat("x", rapid.IntRange(0, 5).Draw(t, "shift")) + strings.Repeat(rapid.SampledFrom([]string{"x", "é", "界", "𝒳"}).Draw(t, "character"), 4096))
		got := approval.Ask(c, noon, time.Minute)
		if len(got.Arguments) > approval.MaxArguments || len(got.Arguments) < approval.MaxArguments-3 || !utf8.Valid(got.Arguments) || !bytes.HasPrefix(c.Arguments, got.Arguments) {
			t.Fatalf("got %d bytes", len(got.Arguments))
		}
		if a := (approval.Approval{Request: got}); !a.For(&c) {
			t.Fatal("it is not for the call that asked")
		}
	})
}
