package embedded

import "testing"

func TestSharedBuffers(t *testing.T) {
	for memory, want := range map[uint64]string{0: "128MB", 400 << 20: "128MB", 2 << 30: "512MB", 64 << 30: "1024MB"} {
		if got := sharedBuffers(memory); got != want {
			t.Errorf("of %d bytes: %s, want %s", memory, got, want)
		}
	}
}
