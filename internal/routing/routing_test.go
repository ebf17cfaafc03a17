package routing_test

import (
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/routing"
)

func TestModeOfAUser(t *testing.T) {
	priorities := map[id.Group]int32{"low": -1, "a": 0, "b": 0, "c": 0, "high": 5, "silent": 9}
	table := routing.Compile([]routing.Set{{Mode: routing.Hybrid}, {Group: "low", Mode: routing.Legacy}, {Group: "a", Mode: routing.V2}, {Group: "b", Mode: routing.Hybrid},
		{Group: "c", Mode: routing.Legacy}, {Group: "high", Mode: routing.V2}, {Group: "gone", Mode: routing.Legacy}}, priorities)
	none := routing.Table{}
	for _, test := range []struct {
		name   string
		table  *routing.Table
		groups []id.Group
		want   routing.Mode
	}{
		{"nothing is set", &none, []id.Group{"a"}, routing.V2},
		{"no group", &table, nil, routing.Hybrid},
		{"a group without a mode", &table, []id.Group{"silent"}, routing.Hybrid},
		{"a group that is gone", &table, []id.Group{"gone"}, routing.Hybrid},
		{"a group's", &table, []id.Group{"a"}, routing.V2},
		{"the highest priority counts", &table, []id.Group{"a", "c", "high", "low", "silent"}, routing.V2},
		{"a negative priority beats none", &table, []id.Group{"low"}, routing.Legacy},
		{"of equals the most cautious counts", &table, []id.Group{"a", "b"}, routing.Hybrid},
		{"whatever their order", &table, []id.Group{"c", "b", "a"}, routing.Legacy},
	} {
		if got := test.table.Of(func() []id.Group { return test.groups }); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// While the shadow is busy nobody waits for it, so many jobs are held, others dropped, and all is counted.
func TestShadowIsBounded(t *testing.T) {
	s := routing.NewShadow(slog.New(slog.NewTextHandler(io.Discard, nil)))
	began, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.Do(func() error { close(began); <-release; return nil })
	<-began
	const room = 256
	order := 0
	for i := range room + 10 {
		s.Do(func() error {
			if order++; order != i+1 {
				t.Errorf("job %d is done as number %d", i, order)
			}
			switch i {
			case 0:
				return errors.New("it failed")
			case 1:
				panic("it panicked")
			case room - 1:
				defer close(done)
			}
			return nil
		})
	}
	if got := s.Stats(); got.Dropped != 10 || got.Waiting != room || got.Done != 0 {
		t.Errorf("%+v", got)
	}
	close(release)
	<-done
	last := make(chan struct{})
	s.Do(func() error { close(last); return nil })
	<-last // so the one before was counted
	if got := s.Stats(); got.Failed != 2 || got.Done < room-1 || got.Dropped != 10 {
		t.Errorf("%+v", got)
	}
}
