package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/mcp"
)

// many is a catalogue with a tool of so many functions, some of them, and one of other functions that come before.
func many(count int) string {
	var functions strings.Builder
	for i := range count {
		fmt.Fprintf(&functions, "{name: f%d}, ", i)
	}
	return fmt.Sprintf(strings.Replace(riskyWorld, "{name: route}", functions.String(), 1), "http://127.0.0.1:1")
}

// Pages have all functions once, in their order; what comes or goes meanwhile neither repeats nor hides another.
func TestListsArePaged(t *testing.T) {
	const count = 450
	b := gateway(t, many(count), func(o *mcp.GatewayOptions) { o.PageSize = 0 })
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			b.apply(t, many(count))
			s := b.connect(t, ann, version, nil)
			var names, sizes []string
			for params := (&sdk.ListToolsParams{}); ; {
				page, err := s.ListTools(b.ctx, params)
				if err != nil {
					t.Fatal(err)
				}
				for _, tool := range page.Tools {
					names = append(names, tool.Name)
				}
				sizes = append(sizes, fmt.Sprint(len(page.Tools)))
				if params.Cursor = page.NextCursor; params.Cursor == "" {
					break
				}
				if len(sizes) == 1 { // the last function goes, and another one comes
					b.apply(t, strings.Replace(many(count), "{name: f449}", "{name: g}", 1))
				}
			}
			want := slices.Clone(own)
			for i := range count - 1 {
				want = append(want, fmt.Sprintf("maps__f%d", i))
			}
			if want = append(want, "maps__g"); !slices.Equal(names, want) || !slices.Equal(sizes, []string{"200", "200", "52"}) {
				t.Errorf("pages of %v have %v", sizes, names)
			}
		})
	}
}
