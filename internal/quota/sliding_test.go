package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/quota"
)

func TestSlotsOfAMinuteAreSeconds(t *testing.T) {
	w := quota.Window{Fixed: time.Minute}
	at := time.Date(2026, 1, 1, 0, 0, 0, 999_999_999, time.UTC)
	if got, want := w.Slot(at), at.Unix(); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if got, want := w.Slot(at.Add(1)), at.Unix()+1; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestSlotsCoverEveryStretchOfTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := quota.Window{Fixed: time.Duration(rapid.Int64Range(1_000, quota.MaxFixed.Milliseconds()).Draw(t, "fixed")) * time.Millisecond}
		at := time.UnixMilli(rapid.Int64Range(-4_102_444_800_000, 4_102_444_800_000).Draw(t, "at"))
		slot := w.Slot(at)
		if start, next := w.SlotStart(slot), w.SlotStart(slot+1); at.Before(start) || !at.Before(next) || w.Slot(start) != slot || w.Slot(start.Add(-1)) != slot-1 {
			t.Fatalf("%s lies in slot %d from %s, followed by %s", at, slot, start, next)
		}
		// The unit counts as long as a stretch of the window's length can hold both it and the present.
		last := at.Add(w.Fixed - 1)
		if w.Slot(last) > slot+quota.Slots {
			t.Fatalf("a unit of slot %d is forgotten in slot %d", slot, w.Slot(last))
		}
		back := w.SlotStart(slot + quota.Slots + 1)
		if late := back.Sub(at.Add(w.Fixed)); late < 0 || late > w.Fixed/quota.Slots+time.Millisecond {
			t.Fatalf("a unit of a window of %s comes back %s late", w.Fixed, late)
		}
	})
}
