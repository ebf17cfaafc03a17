package quota

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones, for machines that have no database of their own
)

// Period returns the period that an instant lies in, of a window that is a calendar one: start <= at < end. Periods follow each
// other without gap or overlap, whatever clocks do: one begins with the first instant of its first date (or of a
// later date, where the calendar skips that one), and a stretch of the day before that clocks repeat after that
// belongs to the new period. A zone that this machine does not know, which rules cannot name, counts as UTC.
func (w *Window) Period(at time.Time) (start, end time.Time) {
	zone, err := loadZone(w.Calendar.Zone)
	if err != nil {
		zone = time.UTC
	}
	year, month, day := at.In(zone).Date()
	months, days := time.Month(0), 1
	switch w.Calendar.Period {
	case PeriodWeek:
		days = 7
		day -= (int(at.In(zone).Weekday()) + 6) % 7 // since Monday
	case PeriodMonth:
		months, days = 1, 0
		day = 1
	}
	end = beginning(year, month, day, zone)
	for !at.Before(end) { // more than once only after an unusual change of clocks
		month, day = month+months, day+days
		start, end = end, beginning(year, month, day, zone)
	}
	return start, end
}

// beginning returns the first instant of a date, or of the next date that exists in the zone. There may be no
// midnight, if clocks then go forward, or two, of which it is the first.
func beginning(year int, month time.Month, day int, zone *time.Location) time.Time {
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	for from := midnight.Add(-24 * time.Hour).In(zone); ; { // offsets are less than a day
		_, offset := from.Zone()
		_, until := from.ZoneBounds()
		begin := midnight.Add(-time.Duration(offset) * time.Second).In(zone)
		if begin.Before(from) {
			begin = from
		}
		// Zero: clocks never change again. On the last days of distant leap years Go names an end that is past already.
		if !until.After(from) || begin.Before(until) {
			return begin
		}
		from = until
	}
}

// zoneName is how zones of the database are called. Files beside them are called otherwise.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

// zones holds what was loaded: reading a zone takes longer than deciding a request.
var zones sync.Map // from name to *time.Location

// loadZone finds a zone by its name in the IANA database; no name is UTC. "Local" is no zone: it is another one on
// another machine.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if !zoneName.MatchString(name) || strings.EqualFold(name, "Local") || len(name) > 64 {
		return nil, fmt.Errorf("no such time zone %q", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("no such time zone %q", name)
	}
	zones.Store(name, zone)
	return zone, nil
}
