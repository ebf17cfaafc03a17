package main

import (
	"io"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestToolsAreFoundAndTurnedOn(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{})
	o := operator{testkit.Context(t), n.Address}
	o.run(t, callWorld, "apply", "-f", "-")
	o.run(t, "", "chat", "create", "c", "--user", "ann")
	for _, test := range []struct {
		args, wanted []string
	}{
		{[]string{"search", "--user", "ann", "--explain", "wipe"}, []string{"wipe", "also called", "ranking", "3 tools could have been found"}},
		{[]string{"search", "--user", "ann", "-o", "json", "wipe"}, []string{`"all_candidates": true`}},
		{[]string{"search", "--user", "ann", "I", "love", "you"}, []string{"No tool fits"}},
		{[]string{"enable", "off", "wipe", "--chat", "c", "--user", "ann", "--actor", "model"}, []string{"off is on for 3 turns", "wipe: needs_approval", "Ask the user"}},
		{[]string{"enable", "wipe", "offf", "--chat", "c", "--user", "ann", "--ttl-turns", "2"}, []string{"wipe is on for 2 turns", "offf: unknown_name", "near to it: off"}},
	} {
		got := o.run(t, "", test.args...)
		for _, want := range test.wanted {
			if !strings.Contains(got, want) {
				t.Errorf("%v: got\n%s\nwithout %q", test.args, got, want)
			}
		}
	}
	if err := run(o.ctx, []string{"--addr", o.address, "enable", "off", "--user", "ann", "--actor", "cat"}, strings.NewReader(""), io.Discard, io.Discard); err == nil {
		t.Error("no such actor")
	}
}
