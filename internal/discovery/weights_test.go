package discovery

import (
	"math"
	"strings"
	"testing"
)

func TestWeights(t *testing.T) {
	w := DefaultWeights()
	if err := w.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	names := map[string]bool{}
	for _, one := range w.All() {
		if names[one.Name] {
			t.Errorf("two weights are named %s", one.Name)
		}
		names[one.Name] = true
		for _, value := range []float64{one.Low - 1, one.High + 1, math.NaN()} {
			broken := DefaultWeights()
			for _, same := range broken.All() {
				if same.Name == one.Name {
					same.Set(value)
				}
			}
			if err := broken.Validate(); err == nil || !strings.Contains(err.Error(), one.Name+": ") {
				t.Errorf("%s = %v: %v", one.Name, value, err)
			}
		}
	}
	w.Learned.GateFrom = w.Learned.GateTo
	if err := w.Validate(); err == nil || !strings.Contains(err.Error(), "learned.gate_to: must be more than learned.gate_from") {
		t.Errorf("equal gates: %v", err)
	}
}
