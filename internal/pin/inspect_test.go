package pin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/pin"
)

func TestInspectFindsWhatPeopleDoNotSee(t *testing.T) {
	for name, test := range map[string]struct {
		f      catalog.Function
		others []string
		want   []string
	}{
		"nothing":            {f: catalog.Function{Name: "read_file", Description: "Reads a file.\n\tAll of it, 日本語 ☂️ too."}, others: []string{"read_file", "write_file"}},
		"an escape sequence": {f: catalog.Function{Name: "a", Description: "a\x1b[31m"}, want: []string{"the description has control characters (U+001B)"}},
		"text turned round":  {f: catalog.Function{Name: "a", Title: "a\u202eb"}, want: []string{"the title has characters that change the direction of text (U+202E)"}},
		"zero width":         {f: catalog.Function{Name: "a", Description: "a\u200bb"}, want: []string{"the description has invisible characters (U+200B)"}},
		"a hidden text":      {f: catalog.Function{Name: "a", Description: "a\U000E0041"}, want: []string{"the description has tag characters, which can hide a whole text (U+E0041)"}},
		"in the schema": {f: catalog.Function{Name: "a", InputSchema: json.RawMessage(`{"properties":{"x":{"description":"a\u2066b"}}}`)},
			want: []string{"the input schema has characters that change the direction of text (U+2066)"}},
		"a name like another": {f: catalog.Function{Name: "read_fi1e"}, others: []string{"read_file", "other"}, want: []string{`the name is easily taken for "read_file"`}},
		"another case":        {f: catalog.Function{Name: "ReadFile"}, others: []string{"read_file"}, want: []string{`the name is easily taken for "read_file"`}},
		"very long":           {f: catalog.Function{Name: "a", Description: strings.Repeat("a", pin.LongDescription+1)}, want: []string{"the description has 8193 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			var others []catalog.Function
			for _, name := range test.others {
				others = append(others, catalog.Function{Name: name})
			}
			if got := pin.Inspect(&test.f, pin.NamesOf(others)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
