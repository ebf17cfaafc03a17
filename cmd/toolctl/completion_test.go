package main

import (
	"strings"
	"testing"
)

func TestCompletionOffersWhatTheServerKnows(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, slashes, "apply", "-f", "-")
	for _, test := range []struct {
		args []string
		want string // the offers, and what the shell should do
	}{
		{[]string{"get", "tool", ""}, "clock weather :4"},
		{[]string{"get", "tool", "clock", ""}, "weather :4"},
		{[]string{"get", "default-avatar", ""}, "*,* *,phone org/eve,* org/eve,phone :4"},
		{[]string{"get", "membership", ""}, "ann, bob, org/eve, :6"},
		{[]string{"get", "membership", "org/eve,"}, "org/eve,premium :4"},
		{[]string{"get", "membership", "org/eve,premium", "org/eve,"}, ":4"},
		{[]string{"get", "membership", "--user", "ann", ""}, "premium :4"},
		{[]string{"get", "device", "nobody,"}, ":4"},
		{[]string{"get", "chat", ""}, ":4"},
		{[]string{"get", "stars", ""}, ":4"},
		{[]string{"resolve", "--user", ""}, "ann bob org/eve :4"},
		{[]string{"resolve", "--user", "ann", "--surface", ""}, "web ann-phone :4"},
		{[]string{"resolve", "--surface", ""}, "web :4"},
		{[]string{"watch", "--user", "ann", "--surface", ""}, "web ann-phone :4"},
		{[]string{"watch", "--chat", ""}, ":4"},
		{[]string{"watch", "--view", ""}, "basic full :4"},
		{[]string{"explain", "--user", "ann", ""}, "clock weather :4"},
		{[]string{"explain", "--user", "ann", "clock", ""}, ":4"},
		{[]string{"chat", "enable", "c", "clock", ""}, "weather :4"},
		{[]string{"chat", "avatar", "c", ""}, "enable disable :4"},
		{[]string{"chat", "avatar", "c", "enable", ""}, "helper :4"},
		{[]string{"export", "-o", ""}, "table json yaml :4"},
	} {
		got := strings.Join(strings.Fields(o.run(t, "", append([]string{"__complete"}, test.args...)...)), " ")
		if got != test.want {
			t.Errorf("%v: got %s, want %s", test.args, got, test.want)
		}
	}
	away := operator{o.ctx, "127.0.0.1:1"}
	if got := away.run(t, "", "__complete", "get", "tool", ""); got != ":4\n" {
		t.Errorf("without a server: got %s", got)
	}
}
