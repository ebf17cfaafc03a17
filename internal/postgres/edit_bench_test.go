package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// BenchmarkEdit measures what a manifest of 5,000 tools costs: to create them, and to change all of them.
func BenchmarkEdit(b *testing.B) {
	world := func(title string, tools int) admin.Edit {
		var edit admin.Edit
		edit.ToolTypes = []catalog.ToolType{{ID: "type", Source: catalog.SourceNative}}
		for n := range tools {
			tool := fmt.Sprintf("tool-%04d", n)
			edit.Tools = append(edit.Tools, catalog.Tool{ID: id.Tool(tool), Type: "type", Name: tool, Title: title,
				Description: strings.Repeat("what it does ", 20), Prompt: strings.Repeat("how it is used ", 40),
				Keywords: []string{"one", "two", "three"}, Risk: catalog.RiskLow, Status: catalog.StatusActive})
		}
		return edit
	}
	for name, test := range map[string]struct{ stored, wanted admin.Edit }{
		"create 5000 tools": {admin.Edit{}, world("first", 5000)},
		"update 5000 tools": {world("first", 5000), world("second", 5000)},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				ctx := testkit.Context(b)
				store, err := postgres.Open(ctx, testkit.Database(b))
				if err != nil {
					b.Fatal(err)
				}
				for i, edit := range []admin.Edit{test.stored, test.wanted} {
					if i == 1 {
						b.StartTimer()
					}
					if _, _, err := store.Edit(ctx, nil, func(admin.Manifest) (admin.Edit, error) { return edit, nil }); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				store.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkEditOfOneObject measures what the change of a single object costs.
func BenchmarkEditOfOneObject(b *testing.B) {
	ctx := testkit.Context(b)
	store := setup(b, 0)
	title := 0
	for b.Loop() {
		title++
		var edit admin.Edit
		edit.ToolTypes = []catalog.ToolType{{ID: "type", Source: catalog.SourceNative, Title: fmt.Sprint(title)}}
		if _, _, err := store.Edit(ctx, nil, func(admin.Manifest) (admin.Edit, error) { return edit, nil }); err != nil {
			b.Fatal(err)
		}
	}
}
