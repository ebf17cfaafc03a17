package quota_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// shelf keeps history as a database does. It can be away, and it can fail to say that it kept something.
type shelf struct {
	mu       sync.Mutex
	last     map[string]int64 // the last batch of each node
	kept     map[string]quota.Cost
	err      error
	keepsYet bool // though it fails
	asked    int
}

func newShelf() *shelf { return &shelf{last: map[string]int64{}, kept: map[string]quota.Cost{}} }

func (s *shelf) AddHistory(_ context.Context, node string, batch int64, parts []quota.Usage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil && !s.keepsYet {
		return s.err
	}
	if batch > s.last[node] {
		s.last[node] = batch
		for _, p := range parts {
			key := fmt.Sprint(p.Day.Format(time.DateOnly), " ", p.User, " ", p.Tool)
			s.kept[key] = quota.Cost{Calls: s.kept[key].Calls + p.Calls, Tokens: s.kept[key].Tokens + p.Tokens}
		}
	}
	return s.err
}

func (s *shelf) set(err error, keepsYet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.keepsYet = err, keepsYet
}

func (s *shelf) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(s.kept)) {
		lines = append(lines, fmt.Sprint(key, " ", s.kept[key]))
	}
	return strings.Join(lines, "; ")
}

var errAway = errors.New("away")

// inBubble runs a test with a clock of its own, which begins on 2000-01-01, and expects what is kept in the end.
func inBubble(t *testing.T, want string, do func(*quota.History, *shelf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		h := quota.NewHistory(s, slog.New(slog.DiscardHandler))
		do(h, s)
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := s.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestHistoryIsKeptWithinASecond(t *testing.T) {
	inBubble(t, "2000-01-01 ann web {3 70}; 2000-01-01 bob web {1 0}", func(h *quota.History, s *shelf) {
		h.Record("ann", "web", 1, 50)
		h.Record("bob", "web", 1, 0)
		h.Record("ann", "web", 2, 20)
		time.Sleep(time.Second)
		if got, want := s.String(), "2000-01-01 ann web {3 70}; 2000-01-01 bob web {1 0}"; got != want {
			t.Errorf("after a second: got %s, want %s", got, want)
		}
		if time.Sleep(time.Minute); s.asked != 1 {
			t.Errorf("it was asked %d times to keep one batch", s.asked)
		}
		if got := h.Stats(); got.Waiting != 0 || got.Age > time.Second {
			t.Errorf("got %+v", got)
		}
	})
}

func TestHistoryIsKeptWhenItIsClosed(t *testing.T) {
	inBubble(t, "2000-01-01 ann web {1 50}", func(h *quota.History, _ *shelf) { h.Record("ann", "web", 1, 50) })
}

func TestHistoryIsByDay(t *testing.T) {
	inBubble(t, "2000-01-01 ann web {2 0}; 2000-01-02 ann web {1 0}", func(h *quota.History, _ *shelf) {
		h.Record("ann", "web", 1, 0)
		time.Sleep(24*time.Hour - time.Nanosecond)
		h.Record("ann", "web", 1, 0)
		time.Sleep(time.Nanosecond)
		h.Record("ann", "web", 1, 0)
	})
}

func TestHistoryWaitsWhileItCannotBeKept(t *testing.T) {
	inBubble(t, "2000-01-01 ann web {11 0}", func(h *quota.History, s *shelf) {
		s.set(errAway, false)
		for range 10 {
			h.Record("ann", "web", 1, 0)
			time.Sleep(time.Second)
		}
		s.set(nil, false)
		h.Record("ann", "web", 1, 0)
	})
}

func TestHistoryThatMayBeKeptIsNotKeptTwice(t *testing.T) {
	inBubble(t, "2000-01-01 ann web {4 4}", func(h *quota.History, s *shelf) {
		s.set(errAway, true)
		for range 2 {
			h.Record("ann", "web", 1, 1)
			time.Sleep(3 * time.Second) // the batch is kept at once, and repeated
		}
		s.set(errAway, false)
		h.Record("ann", "web", 1, 1)
		time.Sleep(time.Second)
		s.set(nil, false)
		h.Record("ann", "web", 1, 1)
	})
}

func TestHistoryTakesBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		h := quota.NewHistory(s, slog.New(slog.DiscardHandler))
		s.set(errAway, false)
		record := func(first, last int) {
			for i := range last - first {
				h.Record(id.User(fmt.Sprint("u", first+i)), "web", 1, 0)
			}
		}
		record(0, 50_000)
		time.Sleep(1250 * time.Millisecond)
		record(50_000, 200_000)
		if got, want := h.Stats(), (quota.HistoryStats{Waiting: 150_000, Age: 1250 * time.Millisecond, Lost: quota.Cost{Calls: 50_000}}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		s.set(nil, false)
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		// What was taken before waits beside what has come since.
		if got := len(s.kept); got != 150_000 {
			t.Errorf("%d users were kept", got)
		}
	})
}

func TestClosingTriesUntilItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		h := quota.NewHistory(s, slog.New(slog.DiscardHandler))
		h.Record("ann", "web", 1, 0)
		s.set(errAway, false)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := h.Close(ctx); !errors.Is(err, errAway) || s.asked < 10 {
			t.Errorf("got %v after %d times", err, s.asked)
		}
	})
}
