package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestApprovalsAreDecided(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{})
	o := operator{testkit.Context(t), n.Address}
	ask := func(call id.Call) string {
		t.Helper()
		a, err := n.Store.AskApproval(o.ctx, approval.Call{ID: call, Chat: "c1", User: "ann", Tool: "shell", Function: "run",
			Arguments: []byte("{\"command\":\"ls\x1b[2J\"}")}, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return string(a.ID)
	}
	contains := func(got string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwithout %q", got, want)
			}
		}
		if strings.Contains(got, "\x1b") {
			t.Errorf("stored text controls the terminal: %q", got)
		}
	}
	ctx, cancel := context.WithCancel(o.ctx)
	out, lines := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--addr", o.address, "approvals", "watch", "--user", "ann"}, strings.NewReader(""), lines, io.Discard)
		_ = lines.Close()
	}()
	told := make(chan string, 100)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			told <- scanner.Text()
		}
	}()
	next := func(want ...string) {
		t.Helper()
		select {
		case line := <-told:
			contains(line, want...)
		case <-o.ctx.Done():
			t.Fatalf("nothing came, but %q should", want)
		}
	}
	one, two := ask("call-1"), ask("call-2")
	for range 2 {
		next("pending: user ann, chat c1: shell run")
	}
	contains(o.run(t, "", "approvals", "list", "--state", "pending"), one, two, "shell run")
	contains(o.run(t, "", "approvals", "approve", one, "--scope", "until", "--until", "8h", "--reason", "checked"), "approved (until)", "checked", "claimed:")
	next(one, "approved (until)", ": checked")
	contains(o.run(t, "", "approvals", "deny", two, "--reason", "no"), "denied")
	next(two, "denied", ": no")
	contains(o.run(t, "", "approvals", "revoke", one), "revoked")
	next(one, "revoked")
	if _, err := o.try("", "approvals", "approve", two); status.Code(err) != codes.FailedPrecondition || exitStatus(err) != exitRefused {
		t.Errorf("got %v", err)
	}
	if _, err := o.try("", "approvals", "approve", two, "--scope", "ever"); err == nil || !strings.Contains(err.Error(), "once, chat, until") {
		t.Errorf("got %v", err)
	}
	if _, err := o.try("", "approvals", "list", "--state", "x"); err == nil || !strings.Contains(err.Error(), "pending, approved") {
		t.Errorf("got %v", err)
	}
	contains(o.run(t, "", "approvals", "list", "--limit", "1"), two, "--limit 0 shows all")
	contains(o.run(t, "", "approvals", "list", "-o", "json"), `"state": "APPROVAL_STATE_REVOKED"`)
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
