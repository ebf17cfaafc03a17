package revision_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/revision"
)

func TestTokensRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := revision.FromSnapshot(rapid.Uint64().Draw(t, "database"), "100:120:100,105,119")
		if err != nil {
			t.Fatal(err)
		}
		r = r.With(rapid.Uint64Range(100, 140).Draw(t, "own"))
		got, err := revision.Parse(r.String())
		if err != nil || got.String() != r.String() {
			t.Fatalf("%s came back as %s: %v", r, got, err)
		}
	})
}

func TestAWriteIncludesItselfAndNotWhatRanBesides(t *testing.T) {
	r, err := revision.FromSnapshot(1, "100:105:100,103")
	if err != nil {
		t.Fatal(err)
	}
	r = r.With(107)
	for xid, want := range map[uint64]bool{99: true, 100: false, 101: true, 103: false, 104: true, 105: false, 106: false, 107: true, 108: false} {
		if got := r.IncludesTransaction(xid); got != want {
			t.Errorf("includes %d: %v, want %v", xid, got, want)
		}
	}
}

func TestLaterWritesSortAfterEarlierOnes(t *testing.T) {
	first, _ := revision.FromSnapshot(1, "100:105:")
	second, _ := revision.FromSnapshot(1, "106:109:")
	if a, b := first.With(105).String(), second.With(108).String(); a >= b {
		t.Errorf("%s does not sort before %s", a, b)
	}
}

// Transactions begin and commit in any order; snapshots are taken in between.
func TestIncludesAsSetsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := func(name string) (revision.Revision, map[uint64]bool) {
			xmin := rapid.Uint64Range(100, 110).Draw(t, name+"xmin")
			xmax := rapid.Uint64Range(xmin, 115).Draw(t, name+"xmax")
			r := revision.Revision{Database: 1, Xmin: xmin, Xmax: xmax}
			in := map[uint64]bool{}
			for xid := uint64(90); xid < 120; xid++ {
				switch {
				case xid < xmin:
					in[xid] = true
				case xid < xmax && rapid.Bool().Draw(t, name+"running"):
					r.InProgress = append(r.InProgress, xid)
				case xid < xmax:
					in[xid] = true
				}
			}
			return r, in
		}
		a, inA := snapshot("a ")
		b, inB := snapshot("b ")
		want := true
		for xid := range inB {
			want = want && inA[xid]
		}
		if got := a.Includes(b); got != want {
			t.Fatalf("%s includes %s: %v, want %v", a, b, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("r1-0000000000000001-0000000000000069-64-0-5")
	f.Add("r1-")
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		r, err := revision.Parse(token)
		if err == nil && r.String() != token {
			t.Errorf("%q came back as %q", token, r.String())
		}
	})
}

func TestWithoutLeavesOneOut(t *testing.T) {
	r := revision.Revision{Xmin: 100, Xmax: 110, InProgress: []uint64{101, 107}}
	for xid := uint64(100); xid < 112; xid++ {
		without := r.Without(xid)
		for other := uint64(98); other < 113; other++ {
			if got, want := without.IncludesTransaction(other), other != xid && r.IncludesTransaction(other); got != want {
				t.Errorf("without %d it includes %d: %t", xid, other, got)
			}
		}
	}
	if len(r.InProgress) != 2 {
		t.Errorf("it was changed: %v", r)
	}
}
