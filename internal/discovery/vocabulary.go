package discovery

import "sync"

// vocabulary numbers terms by their keys. It only grows, and several indexes share it: a term that an older
// one does not have is one without tools to it.
type vocabulary struct {
	mu      sync.RWMutex
	numbers map[uint64]uint32
}

func newVocabulary() *vocabulary { return &vocabulary{numbers: map[uint64]uint32{}} }

// add returns the numbers of terms, new ones for new terms.
func (v *vocabulary) add(keys []uint64) map[uint64]uint32 {
	numbers := make(map[uint64]uint32, len(keys))
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range keys {
		number, ok := v.numbers[key]
		if !ok {
			number = uint32(len(v.numbers))
			v.numbers[key] = number
		}
		numbers[key] = number
	}
	return numbers
}

// find calls do with the number of each term that is known, in the order of the keys.
func (v *vocabulary) find(keys []uint64, do func(i int, number uint32)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for i, key := range keys {
		if number, ok := v.numbers[key]; ok {
			do(i, number)
		}
	}
}
