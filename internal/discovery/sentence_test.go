package discovery

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// The rule in short; the code is what it comes to without the cost of an expression.
var sentenceEnds = regexp.MustCompile(`[.?!;]\s|[。？！；\n]|, and |，`)

func TestSentenceEnd(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", ".", "?", "!", ";", ",", " ", "\t", "\n", ", and ", ", an", "。", "？", "！", "；", "，", "天", "é", "\xe3", "\x80", "x. y"})
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, one := range rapid.SliceOfN(piece, 0, 8).Draw(t, "text") {
			text += one
		}
		wantEnd, wantNext := -1, -1
		if at := sentenceEnds.FindStringIndex(text); at != nil {
			wantEnd, wantNext = at[0], at[1]
		}
		if end, next := sentenceEnd(text); end != wantEnd || next != wantNext {
			t.Fatalf("%q: %d, %d, want %d, %d", text, end, next, wantEnd, wantNext)
		}
	})
}
