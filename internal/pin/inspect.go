package pin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

// LongDescription is from how many bytes on a description is suspicious: a model reads all of it.
const LongDescription = 8 << 10

// Inspect returns what is suspicious about a function, in sentences for an operator: characters that people do not
// see, but models read, and names that are easily taken for others of the server's.
func Inspect(f *catalog.Function, names Names) []string {
	var findings []string
	texts := map[string]string{"title": f.Title, "description": f.Description}
	for name, raw := range map[string]json.RawMessage{"input schema": f.InputSchema, "output schema": f.OutputSchema} {
		var schema any
		if len(raw) > 0 && json.Unmarshal(raw, &schema) == nil {
			var all strings.Builder
			gather(schema, &all)
			texts[name] = all.String()
		}
	}
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		for _, kind := range hidden(texts[field]) {
			findings = append(findings, fmt.Sprintf("the %s has %s", field, kind))
		}
	}
	if len(f.Description) > LongDescription {
		findings = append(findings, fmt.Sprintf("the description has %d bytes", len(f.Description)))
	}
	for _, other := range names[skeleton(f.Name)] {
		if other != f.Name {
			findings = append(findings, fmt.Sprintf("the name is easily taken for %q", other))
		}
	}
	return findings
}

// Names are names of functions, by what they look like.
type Names map[string][]string

// NamesOf collects the names of functions.
func NamesOf(functions ...[]catalog.Function) Names {
	names := Names{}
	for _, list := range functions {
		for i := range list {
			look := skeleton(list[i].Name)
			if !slices.Contains(names[look], list[i].Name) {
				names[look] = append(names[look], list[i].Name)
			}
		}
	}
	return names
}

// gather writes all texts of a JSON value, keys included.
func gather(value any, to *strings.Builder) {
	switch v := value.(type) {
	case string:
		to.WriteString(v + "\n")
	case []any:
		for _, child := range v {
			gather(child, to)
		}
	case map[string]any:
		for key, child := range v {
			to.WriteString(key + "\n")
			gather(child, to)
		}
	}
}

// hidden tells which kinds of characters a text has that people do not see, each with the first of its kind.
func hidden(text string) []string {
	first := map[string]rune{}
	for _, r := range text {
		if kind := kindOf(r); kind != "" {
			if _, seen := first[kind]; !seen {
				first[kind] = r
			}
		}
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(first)) {
		kinds = append(kinds, fmt.Sprintf("%s (%U)", kind, first[kind]))
	}
	return kinds
}

// kindOf names the kind of a character that people do not see; empty: they do.
func kindOf(r rune) string {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return ""
	case unicode.Is(unicode.Bidi_Control, r):
		return "characters that change the direction of text"
	case r >= 0xE0000 && r <= 0xE007F:
		return "tag characters, which can hide a whole text"
	case unicode.IsControl(r):
		return "control characters"
	case unicode.Is(unicode.Variation_Selector, r) && r != 0xFE0E && r != 0xFE0F: // those two choose how an emoji looks
		return "variation selectors, which can hide a whole text"
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), r == 0x2800, r == 0x2028, r == 0x2029:
		return "invisible characters"
	case unicode.Is(unicode.Co, r):
		return "characters without a meaning"
	}
	return ""
}

// lookAlikes are what looks alike in the characters that a name may have, once it is in lower case.
var lookAlikes = strings.NewReplacer("0", "o", "1", "l", "i", "l", "5", "s", "vv", "w", "rn", "m", "cl", "d", "_", "", "-", "", ".", "")

// skeleton is the same for names that look alike.
func skeleton(name string) string { return lookAlikes.Replace(strings.ToLower(name)) }
