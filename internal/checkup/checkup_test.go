package checkup_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/checkup"
)

// A clock is as wrong as it surely is: how long it took to ask may explain some of it.
func TestClocks(t *testing.T) {
	begin := time.Now()
	for _, c := range []struct {
		ahead, trip time.Duration
		want        checkup.Level
	}{
		{0, time.Millisecond, checkup.OK},
		{400 * time.Millisecond, time.Millisecond, checkup.OK},
		{-2 * time.Second, time.Millisecond, checkup.Note},
		{2 * time.Second, 10 * time.Second, checkup.OK},
		{time.Hour, 10 * time.Second, checkup.Bad},
		{-6 * time.Second, time.Millisecond, checkup.Bad},
	} {
		var r checkup.Report
		r.Clock("clock", begin, begin.Add(c.trip/2).Add(c.ahead), begin.Add(c.trip))
		if got := r.Worst(); got != c.want {
			t.Errorf("%s ahead, asked for %s: %s, not %s", c.ahead, c.trip, got, c.want)
		}
	}
}

func TestAReportSaysWhatToDo(t *testing.T) {
	var r checkup.Report
	if r.Worst() != checkup.OK {
		t.Error("an empty report is bad")
	}
	r.OK("a", "%d", 7)
	r.Bad("b", "broken", "mend it")
	var out bytes.Buffer
	if err := r.Print(&out); err != nil || r.Worst() != checkup.Bad || out.String() != "ok    a: 7\nBAD   b: broken\n      → mend it\n" {
		t.Errorf("%v\n%s", err, strings.TrimSpace(out.String()))
	}
}
