package postgres_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/quota"
)

// Whatever is written in whatever order, the newest version of each counter is there, until it has expired.
func TestQuotaCounters(t *testing.T) {
	ctx, store, _ := open(t)
	archive := store.QuotaCounters()
	now := time.Now().Truncate(time.Millisecond)
	counter := func(subject, shape string, version int64, content string, expire time.Time) quota.ArchivedCounter {
		return quota.ArchivedCounter{CounterName: quota.CounterName{Subject: subject, Rule: "r", Shape: shape},
			Version: version, Content: content, Expire: expire}
	}
	keep := func(counters ...quota.ArchivedCounter) {
		t.Helper()
		if err := archive.Keep(ctx, counters); err != nil {
			t.Fatal(err)
		}
	}
	want := func(subject string, want ...quota.ArchivedCounter) {
		t.Helper()
		got, err := archive.Kept(ctx, subject)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i].Expire = got[i].Expire.In(now.Location())
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", subject, got, want)
		}
	}
	want("u:a")
	hour, day := counter("u:a", "cs3600000", 7, "u 3 o 5 1 3", now.Add(time.Hour)), counter("u:a", "ccDAY@", 9, "u 3 p 5", now.Add(24*time.Hour))
	keep(hour, day, counter("u:b", "cs3600000", 1, "", now))
	want("u:a", day, hour)
	newer := counter("u:a", "cs3600000", 8, "u 4 o 5 1 4", now.Add(2*time.Hour))
	keep(newer, counter("u:a", "ccDAY@", 9, "u 2 p 5", now))
	keep(hour)
	want("u:a", day, newer)
	if err := archive.Prune(ctx, now.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	want("u:a", day)
	want("u:b")
}
