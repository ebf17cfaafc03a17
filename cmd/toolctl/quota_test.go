package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const limits = `
tools:
  - tool_id: weather
    tool_type_id: weather
    name: weather
    config: {days: 3}
    quotas:
      - {quota_id: weather.calls, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 3, window: {fixed: 7200s}}
      - {quota_id: weather.tokens, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, limit: 1000, window: {calendar: {period: CALENDAR_PERIOD_MONTH}}, shadow: true}
`

// limited serves a tool with quotas.
func limited(t *testing.T) operator {
	t.Helper()
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, limits, "apply", "-f", "-")
	return o
}

// states runs a command and returns its table, without when quotas reset, in lines.
func (o operator) states(t *testing.T, args ...string) string {
	t.Helper()
	var lines []string
	for _, row := range rows(o.run(t, "", args...)) {
		when := len(row) - 2
		if row[when] != "" {
			if row[when-3] == "0" || !strings.HasPrefix(row[when], "in ") {
				t.Errorf("it resets %q", row[when])
			}
			row[when] = "in …"
		}
		lines = append(lines, strings.TrimSpace(strings.Join(row, " ")))
	}
	return strings.Join(lines, "\n")
}

func TestQuotasAreTakenAndShown(t *testing.T) {
	o := limited(t)
	same(t, o.states(t, "quota", "usage", "ann"), `
weather weather.calls user calls 3 0 0 3
weather weather.tokens user tokens 1000 0 0 1000  never denies`)
	same(t, o.states(t, "quota", "consume", "ann", "weather", "--tokens", "900"), `
weather.calls user calls 3 1 0 2 in …
weather.tokens user tokens 1000 900 0 100 in … never denies, near its limit`)
	same(t, o.states(t, "quota", "consume", "ann", "weather", "--calls", "2", "--operation-id", "again"), `
weather.calls user calls 3 3 0 0 in … near its limit
weather.tokens user tokens 1000 900 0 100 in … never denies, near its limit`)
	o.run(t, "", "quota", "consume", "ann", "weather", "--calls", "2", "--operation-id", "again")

	out, err := o.try("", "quota", "consume", "ann", "weather")
	if err == nil || out != "" || exitStatus(err) != exitExhausted {
		t.Fatalf("got %q %v", out, err)
	}
	if text := explainError(err); !strings.Contains(text, "\n  weather.calls: ") || !strings.Contains(text, "\ntry again in 2h") {
		t.Errorf("got %s", text)
	}
	if _, err = o.try("", "quota", "consume", "bob", "weather", "--calls", "4"); err == nil || !strings.Contains(explainError(err), "\nwaiting does not help") {
		t.Errorf("got %v", err)
	}
	for _, args := range [][]string{{"quota", "usage", "ann", "clock"}, {"quota", "consume", "ann", "clock"}} {
		same(t, o.run(t, "", args...), "no quotas apply")
	}
	if _, err = o.try("", "quota", "usage", "nobody"); exitStatus(err) != exitMissing {
		t.Errorf("got %v", err)
	}
	same(t, o.states(t, "quota", "usage", "bob", "clock", "weather"), `
weather weather.calls user calls 3 0 0 3
weather weather.tokens user tokens 1000 0 0 1000  never denies`)
}

func TestReservationsAreCommittedOrReleased(t *testing.T) {
	o := limited(t)
	for operation, tokens := range map[string]string{"kept": "500", "dropped": "100"} {
		out := o.run(t, "", "quota", "reserve", "ann", "weather", "--tokens", tokens, "--operation-id", operation, "--lease", "1h")
		if !strings.Contains(out, "held for 1h") && !strings.Contains(out, "held for 59m") {
			t.Errorf("got %s", out)
		}
	}
	o.run(t, "", "quota", "release", "dropped")
	same(t, o.states(t, "quota", "usage", "ann"), `
weather weather.calls user calls 3 0 1 2
weather weather.tokens user tokens 1000 0 500 500  never denies`)
	same(t, o.states(t, "quota", "commit", "kept", "--tokens", "300"), `
weather.calls user calls 3 1 0 2 in …
weather.tokens user tokens 1000 300 0 700 in … never denies`)
	if _, err := o.try("", "quota", "release", "kept"); exitStatus(err) != exitRefused {
		t.Errorf("released what was committed: %v", err)
	}
	if _, err := o.try("", "quota", "commit", "kept", "--tokens", "1"); err == nil || !strings.Contains(explainError(err), "at another cost") {
		t.Errorf("committed again, at another cost: %v", err)
	}
	if _, err := o.try("", "quota", "commit", "none"); exitStatus(err) != exitMissing {
		t.Errorf("committed nothing: %v", err)
	}
}

func TestOverridesAndResets(t *testing.T) {
	o := limited(t)
	same(t, o.run(t, "", "quota", "override", "ann", "weather.calls", "--limit", "5"), "ann has a limit of 5 of quota weather.calls")
	o.run(t, "", "quota", "consume", "ann", "weather", "--calls", "4")
	same(t, o.states(t, "quota", "usage", "ann", "weather"), `
weather weather.calls user calls 5 4 0 1 in … near its limit
weather weather.tokens user tokens 1000 0 0 1000  never denies`)
	if out := o.run(t, "", "quota", "override", "ann", "weather.calls", "--limit", "7", "--until", "48h", "--reason", "she asked"); !strings.Contains(out, " until 2") {
		t.Errorf("got %s", out)
	}
	if out := o.run(t, "", "audit"); !strings.Contains(out, "she asked") {
		t.Errorf("the audit log does not know why:\n%s", out)
	}
	same(t, o.run(t, "", "quota", "override", "ann", "weather.calls", "--clear"), "ann has the limit of quota weather.calls again")
	for range 2 {
		same(t, o.states(t, "quota", "reset", "ann", "weather.calls", "--reason", "a present", "--request-id", "r"), "weather.calls user calls 3 0 0 3")
	}
	o.run(t, "", "quota", "consume", "ann", "weather")
	if got := o.states(t, "quota", "reset", "ann", "weather.calls", "--reason", "a present", "--request-id", "r"); !strings.HasPrefix(got, "weather.calls user calls 3 1 0 2") {
		t.Errorf("a repeated request reset it again: %s", got)
	}
	for _, args := range []string{
		"override ann weather.calls", "override ann weather.calls --limit 5 --clear", "override ann weather.calls --clear --until 1h",
		"override ann weather.calls --limit 5 --until soon", "reset ann weather.calls",
	} {
		if _, err := o.try("", append([]string{"quota"}, strings.Fields(args)...)...); exitStatus(err) != exitError {
			t.Errorf("%s: got %v", args, err)
		}
	}
	if _, err := o.try("", "quota", "override", "ann", "none", "--limit", "5"); exitStatus(err) != exitMissing {
		t.Errorf("got %v", err)
	}
}

func TestHistoryIsShown(t *testing.T) {
	o := limited(t)
	begin := time.Now().UTC().Format(time.DateOnly)
	o.run(t, "", "quota", "consume", "ann", "weather", "--tokens", "10", "--operation-id", "again")
	o.run(t, "", "quota", "consume", "ann", "weather", "--tokens", "10", "--operation-id", "again")
	o.run(t, "", "quota", "consume", "bob", "weather", "--calls", "2")
	o.run(t, "", "quota", "consume", "bob", "clock") // which has no quotas
	o.run(t, "", "quota", "reserve", "ann", "weather", "--tokens", "100", "--operation-id", "kept")
	o.run(t, "", "quota", "commit", "kept", "--tokens", "30")
	o.run(t, "", "quota", "commit", "kept", "--tokens", "30")
	o.run(t, "", "quota", "reserve", "ann", "weather", "--tokens", "100", "--operation-id", "dropped")
	o.run(t, "", "quota", "release", "dropped")
	lines := func(args ...string) string {
		var lines []string
		for _, row := range rows(o.run(t, "", append([]string{"quota", "history", "--from", begin}, args...)...)) {
			lines = append(lines, strings.Join(row[1:], " "))
		}
		return strings.Join(lines, "\n")
	}
	const want = "ann weather 2 40\nbob clock 1 0\nbob weather 2 0\n SUM 5 40"
	for range 200 { // it is written within a second
		if lines() == want {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	same(t, lines(), want)
	same(t, lines("--user", "bob", "--limit", "1"), "bob clock 1 0\n SUM 1 0")
	same(t, lines("--tool", "weather", "--limit", "2"), "ann weather 2 40\nbob weather 2 0\n SUM 4 40")
	same(t, lines("--to", "2001-01-01"), " SUM 0 0")
	var got struct{ Usage []map[string]any }
	if err := json.NewDecoder(bytes.NewBufferString(o.run(t, "", "quota", "history", "--user", "ann", "-o", "json"))).Decode(&got); err != nil || len(got.Usage) != 1 || got.Usage[0]["tokens"] != "40" {
		t.Errorf("got %v %v", got, err)
	}
	if _, err := o.try("", "quota", "history", "--from", "yesterday"); exitStatus(err) != exitRefused {
		t.Errorf("got %v", err)
	}
}

func TestQuotaAnswersComeInEveryFormat(t *testing.T) {
	o := limited(t)
	for _, command := range []string{"usage ann", "consume ann weather", "reserve ann weather --tokens 1 --operation-id o", "commit o",
		"override ann weather.calls --limit 5", "reset ann weather.calls --reason why --request-id r", "history"} {
		for _, format := range []string{"json", "yaml"} {
			out := o.run(t, "", append(strings.Fields("quota "+command), "-o", format)...)
			if format == "json" && !json.Valid([]byte(out)) || format == "yaml" && strings.Contains(out, "│") {
				t.Errorf("%s -o %s: got %s", command, format, out)
			}
		}
	}
}
