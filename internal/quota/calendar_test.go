package quota_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/quota"
)

func TestCalendarCases(t *testing.T) {
	data, err := os.ReadFile("testdata/calendar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name           string
		Window         quota.Calendar
		At, Start, End time.Time
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			w := quota.Window{Calendar: &c.Window}
			start, end := w.Period(c.At)
			if !start.Equal(c.Start) || !end.Equal(c.End) {
				t.Errorf("got %s to %s, want %s to %s", start, end, c.Start, c.End)
			}
		})
	}
}

var zones = []string{"", "UTC", "Asia/Shanghai", "Asia/Kathmandu", "Asia/Tehran", "Asia/Beirut", "Asia/Gaza", "Africa/Cairo", "Africa/Casablanca",
	"Africa/Monrovia", "Europe/Berlin", "Europe/Dublin", "Europe/London", "Atlantic/Azores", "America/New_York", "America/Sao_Paulo",
	"America/Havana", "America/St_Johns", "America/Nuuk", "America/Scoresbysund", "America/Caracas", "America/Juneau", "Antarctica/Troll",
	"Antarctica/Casey", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Chatham", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Manila"}

func drawCalendar(t *rapid.T) (quota.Window, *time.Location) {
	zone := rapid.SampledFrom(zones).Draw(t, "zone")
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	period := rapid.SampledFrom([]quota.Period{quota.PeriodDay, quota.PeriodWeek, quota.PeriodMonth}).Draw(t, "period")
	return quota.Window{Calendar: &quota.Calendar{Period: period, Zone: zone}}, location
}

// drawInstant prefers instants near changes of clocks and near midnights.
func drawInstant(t *rapid.T, zone *time.Location) time.Time {
	// From 1840, when zones had odd minutes and Manila and Alaska lay beyond the date line, to 2150.
	at := time.Unix(rapid.Int64Range(-4_102_444_800, 5_680_281_600).Draw(t, "at"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
	switch rapid.IntRange(0, 2).Draw(t, "near") {
	case 1:
		if _, change := at.In(zone).ZoneBounds(); !change.IsZero() {
			at = change
		}
	case 2:
		year, month, day := at.In(zone).Date()
		at = time.Date(year, month, day, 0, 0, 0, 0, zone)
	default:
		return at
	}
	return at.Add(time.Duration(rapid.Int64Range(-int64(26*time.Hour), int64(26*time.Hour)).Draw(t, "beside")))
}

func TestPeriodsTileTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, zone := drawCalendar(t)
		at := drawInstant(t, zone)
		start, end := w.Period(at)
		if at.Before(start) || !at.Before(end) {
			t.Fatalf("%s does not lie in %s to %s", at.In(zone), start, end)
		}
		same := func(inside time.Time) {
			if s, e := w.Period(inside); !s.Equal(start) || !e.Equal(end) {
				t.Fatalf("%s lies in %s to %s, but %s in %s to %s", at.In(zone), start, end, inside.In(zone), s, e)
			}
		}
		same(start)
		same(end.Add(-1))
		same(start.Add(time.Duration(rapid.Int64Range(0, int64(end.Sub(start))-1).Draw(t, "inside"))))
		if s, _ := w.Period(end); !s.Equal(end) {
			t.Fatalf("after %s follows %s", end, s)
		}
		if _, e := w.Period(start.Add(-1)); !e.Equal(start) {
			t.Fatalf("before %s ends %s", start, e)
		}
		// A period begins where a date does: another date ends there. And it has the length that clocks give it.
		if before, first := start.Add(-1).In(zone), start.In(zone); before.YearDay() == first.YearDay() && before.Year() == first.Year() {
			t.Fatalf("%s begins in the middle of a day", first)
		}
		most := map[quota.Period]time.Duration{quota.PeriodDay: 1, quota.PeriodWeek: 7, quota.PeriodMonth: 31}[w.Calendar.Period] * 24 * time.Hour
		if length := end.Sub(start); length > most+25*time.Hour {
			t.Fatalf("%s to %s is %s long", start, end, length)
		}
	})
}

func TestDaysOf23And25Hours(t *testing.T) {
	w := quota.Window{Calendar: &quota.Calendar{Period: quota.PeriodDay, Zone: "Europe/Berlin"}}
	hours := map[int]int{}
	at := time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)
	for at.Before(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)) {
		start, end := w.Period(at)
		hours[int(end.Sub(start).Hours())]++
		at = end
	}
	if hours[23] != 1 || hours[24] != 363 || hours[25] != 1 {
		t.Errorf("a year had days of %v hours", hours)
	}
}

func BenchmarkPeriod(b *testing.B) {
	w := quota.Window{Calendar: &quota.Calendar{Period: quota.PeriodMonth, Zone: "America/New_York"}}
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for b.Loop() {
		w.Period(at)
	}
}
