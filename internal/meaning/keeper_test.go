package meaning_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/meaning"
)

// Only what changed is asked for, and equal texts once.
func TestSyncAsksForDifferences(t *testing.T) {
	w := build(t, tool("x", "aaa"), tool("y", "bbb"))
	s := w.serve()
	step := func(what string, asked, vectors int) *discovery.Vectors {
		t.Helper()
		s.sync()
		w.wantAsked(what, asked)
		if v := s.Vectors(); len(v.ByTool) != vectors {
			t.Errorf("%s: %d vectors, want %d", what, len(v.ByTool), vectors)
		}
		return s.Vectors()
	}
	first := step("all", 2, 2)
	if step("again", 0, 2) != first {
		t.Error("the same catalogue has other vectors")
	}
	w.change(w.tools...)
	if step("a catalogue with the same tools", 0, 2) != first {
		t.Error("the same tools have other vectors")
	}
	w.change(tool("x", "aaa"), tool("y", "bbba"))
	step("a changed tool", 1, 2)
	same := tool("y", "bbba")
	same.ID = "z"
	w.change(append(w.tools, same)...)
	step("a tool of the same words", 0, 3)
	w.change(w.tools[1:]...)
	step("a tool that went", 0, 2)
	w.change(append(w.tools, tool("x", "aaa"))...)
	step("a tool that came back, whose vector is stored", 0, 3)
	if stats := s.Stats(); stats.Vectors != 3 || stats.Waiting != 0 || stats.Made != 3 || stats.Loaded != 1 {
		t.Errorf("%+v", stats)
	}
}

// What came before a failure stays and is not asked for again.
func TestSyncGoesOnWhereItFailed(t *testing.T) {
	w := build(t, many(100)...) // two questions
	s := w.serve()
	w.model.fails.Store(true)
	if err := s.Sync(t.Context()); err == nil || s.Vectors() != nil || s.Stats().Waiting != 100 || s.Stats().Unmade != 64 {
		t.Fatalf("%v, %+v", err, s.Stats())
	}
	if n := w.count("vector_claims"); n != 0 {
		t.Errorf("a failure left %d claims", n)
	}
	w.model.fails.Store(false)
	s.sync()
	w.wantAsked("all", 100)
	w.model.fails.Store(true)
	w.change(append(w.tools, tool("new", "b"))...)
	if err := s.Sync(t.Context()); err == nil || s.holds() != 100 {
		t.Errorf("%v: what there was went", err)
	}
}

func TestUnderstand(t *testing.T) {
	w := build(t, tool("x", "aaa"), tool("y", "bbb"))
	s := w.serve()
	ask := func(text string) bool { return s.understands("ann", text) }
	if ask("aa") {
		t.Error("a vector that there is nothing to compare with was asked for")
	}
	s.sync()
	w.model.asked()
	first := ask("aa")
	if again := ask("aa"); !first || !again || len(w.model.asked()) != 1 {
		t.Error("a request that was asked about is asked about again, or not at all")
	}
	if ask(" \n") || len(w.model.asked()) != 0 {
		t.Error("nothing was asked about")
	}
	if !ask(strings.Repeat("é", 5000)+"\xff") || len(w.model.asked()[0]) > 4096 {
		t.Error("a long request is sent whole")
	}
	w.model.fails.Store(true)
	if ask("bb") {
		t.Error("a failure gives a vector")
	}
	if stats := s.Stats(); stats.Asked != 3 || stats.Remembered != 1 || stats.Failed != 1 {
		t.Errorf("%+v", stats)
	}
}

// A model that hangs costs a search its deadline and no more.
func TestUnderstandGivesUpAtItsDeadline(t *testing.T) {
	w := build(t, tool("x", "aaa"))
	s := w.serve(func(o *meaning.Options) { o.Timeout = 20 * time.Millisecond })
	s.sync()
	w.model.hangs.Store(true)
	done := make(chan bool)
	go func() {
		read := discovery.Read("a")
		understood, missed := s.Understand(context.Background(), "ann", read, "a")
		done <- understood == read && missed
	}()
	select {
	case same := <-done:
		if !same {
			t.Error("a vector came from nowhere")
		}
	case <-time.After(patience):
		t.Fatal("it waits for ever")
	}
}

func TestRun(t *testing.T) {
	w := build(t, tool("x", "aaa"))
	s := w.serve()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { s.Run(ctx); close(stopped) }()
	eventually(t, "vectors", func() bool { return s.Vectors() != nil })
	cancel()
	<-stopped
}
