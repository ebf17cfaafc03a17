package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// A server that has learned from the past requests is measured.
func TestSearch(t *testing.T) {
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{Learning: true})
	ctx, cancel := context.WithCancel(testkit.Context(t))
	learning := make(chan struct{})
	go func() { // as a server does every ten seconds
		defer close(learning)
		for ctx.Err() == nil {
			_ = n.Learning.Read(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-learning })
	var out bytes.Buffer
	args := []string{"search", "--addr", n.Address, "--database-url", url, "--tools", "60", "--past", "300", "--concurrency", "1,3", "--duration", "50ms", "--warmup", "0s", "--rounds", "1", "-o", "json"}
	for range 2 { // it can be repeated
		out.Reset()
		if err := run(ctx, args, nil, &out, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	}
	var report discoveryReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 2 || report.Rows[1][0] != 3.0 || report.Rows[1][5] != 0.0 {
		t.Errorf("%v", report.Rows)
	}
}

func TestSearchFaults(t *testing.T) {
	err := run(t.Context(), []string{"search", "--addr", "x", "--tools", "3", "--past", "-1", "--concurrency", "0", "--duration", "0s", "--rounds", "0"}, nil, &bytes.Buffer{}, &bytes.Buffer{})
	for _, want := range []string{"--addr", "--tools", "--past", "--concurrency", "--duration", "--rounds"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
	if err := run(t.Context(), []string{"search"}, nil, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "--database-url: must be given") {
		t.Errorf("%v", err)
	}
}
