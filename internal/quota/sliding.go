package quota

import "time"

// Slots is into how many parts a fixed window is divided.
const Slots = 60

// Slot numbers the parts of a fixed window's length that an instant lies in. A unit that is taken in slot n counts
// in slots n to n+Slots: no stretch of the window's length, wherever it begins, is then without it. It comes back
// at SlotStart(n+Slots+1), which is up to a part later than it could.
//
// Numbers come from whole milliseconds, so that others who count in those find the same ones.
func (w *Window) Slot(at time.Time) int64 {
	n, d := at.UnixMilli()*Slots, w.Fixed.Milliseconds()
	if n < 0 {
		return -((-n + d - 1) / d)
	}
	return n / d
}

// SlotStart is the first millisecond of a slot.
func (w *Window) SlotStart(slot int64) time.Time {
	ms := slot * w.Fixed.Milliseconds()
	if ms > 0 {
		ms += Slots - 1
	}
	return time.UnixMilli(ms / Slots)
}
