package main

import (
	"strings"
	"testing"
)

func FuzzReadManifest(f *testing.F) {
	f.Add("tools: [{tool_id: a, config: {depth: 1}}]")
	f.Add("tools: &x [*x]")
	f.Add("users: [{memberships: [{start_time: 2026-01-01T00:00:00Z}]}]")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = readManifests([]string{"-"}, strings.NewReader(text)) // it must return
	})
}
