package call_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
)

func TestUniqueNames(t *testing.T) {
	for _, c := range []struct{ tool, function, want string }{
		{"maps", "route", "maps__route"},
		{"maps", "_route", "maps___route"},
		{"a", "b__c", "a__b__c"},
		{"a__b", "c", "a_b_x46ayoog4nlt__c"},
		{"maps_", "route", ""},
		{"maps", "find.route", ""},
		{"web.search", "route", ""},
		{strings.Repeat("t", 31), strings.Repeat("f", 31), strings.Repeat("t", 31) + "__" + strings.Repeat("f", 31)},
		{strings.Repeat("t", 31), strings.Repeat("f", 32), ""},
		{strings.Repeat("t", 128), strings.Repeat("f", 128), ""},
		{"..", "..", ""},
	} {
		got := call.UniqueName(c.tool, c.function)
		if c.want != "" && got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.tool, c.function, got, c.want)
		}
	}
}

// asked is who asks for calls of one function, which has a schema.
func asked(t testing.TB, schema string) call.Facts {
	world, err := effective.Compile(effective.Definitions{
		ToolTypes: []catalog.ToolType{{ID: "type", Source: catalog.SourceNative, InputSchema: []byte(schema)}},
		Tools:     []catalog.Tool{{ID: "tool", Type: "type", Name: "tool", Core: true, Owner: "u", Status: catalog.StatusActive, Risk: catalog.RiskLow}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return call.Facts{Index: call.Compile(world.Catalog, nil), User: "u", Now: noon,
		Answer: world.Resolve(effective.Question{User: &availability.User{ID: "u"}, Surface: availability.Web, Now: noon})}
}

func TestArgumentsAreBounded(t *testing.T) {
	nested := func(depth int) any {
		value := any("end")
		for range depth {
			value = map[string]any{"a": []any{value}}
		}
		return value
	}
	many := make([]any, call.MaxArgumentValues)
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"deep enough":  {nested(49), ""},
		"too deep":     {nested(50), "nested more than 100 deep"},
		"far too deep": {nested(100_000), "nested more than 100 deep"},
		"long enough":  {strings.Repeat("x", 1<<20-100), ""},
		"too long":     {strings.Repeat("x", 1<<20), "larger than 1 MiB"},
		"a long name":  {map[string]any{strings.Repeat("x", 1<<20): 1}, "larger than 1 MiB"},
		"too many":     {many, "more than 20000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			f := asked(t, `{"type": "object"}`)
			a := call.Decide(&f, &call.Request{Call: "c", Function: "tool", Arguments: map[string]any{"value": c.value}})
			var got string
			if len(a.Next.Faults) > 0 {
				got = a.Next.Faults[0].Description
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestFaultsAreBounded(t *testing.T) {
	f := asked(t, `{"properties": {"list": {"items": {"type": "string", "pattern": "^a$"}}}}`)
	list := make([]any, 1000)
	for i := range list {
		list[i] = strings.Repeat("语", 300)
	}
	a := call.Decide(&f, &call.Request{Call: "c", Function: "tool", Arguments: map[string]any{"list": list}})
	if a.Reason != call.ReasonBadArguments || len(a.Next.Faults) != 16 || len(a.Message) > 500 {
		t.Fatalf("%s, %d faults, %s", a.Reason, len(a.Next.Faults), a.Message)
	}
	for i, fault := range a.Next.Faults {
		if fault.Path != fmt.Sprintf("$.list[%d]", i) || len(fault.Description) > 300 {
			t.Errorf("%+v", fault)
		}
	}
}

// TestSchemasAreCompiledOnce has many first calls at a time, for the race detector.
func TestSchemasAreCompiledOnce(t *testing.T) {
	f := asked(t, `{"required": ["a"]}`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if a := call.Decide(&f, &call.Request{Call: "c", Function: "tool", Arguments: map[string]any{}}); a.Reason != call.ReasonBadArguments {
				t.Error(a.Reason)
			}
		})
	}
	all.Wait()
}

func BenchmarkDecide(b *testing.B) {
	for _, tools := range []int{500, 5000, 50_000} {
		b.Run(fmt.Sprint("tools=", tools), func(b *testing.B) {
			d := effectivetest.Company(tools, 20, 50)
			for i := range d.Tools {
				d.Tools[i].Risk = catalog.RiskLow
			}
			world, err := effective.Compile(d)
			if err != nil {
				b.Fatal(err)
			}
			q := effectivetest.CompanyQuestion(noon)
			f := call.Facts{Index: call.Compile(world.Catalog, nil), Answer: world.Resolve(q), User: q.User.ID, Now: noon}
			number, _ := f.Answer.Effective.NextSet(0)
			r := call.Request{Call: "call", Chat: "chat", Function: world.Catalog.Tool(number).Name}
			if a := call.Decide(&f, &r); a.Decision != call.Allow {
				b.Fatal(a)
			}
			b.ReportAllocs()
			for b.Loop() {
				call.Decide(&f, &r)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	world, err := effective.Compile(effectivetest.Company(5000, 20, 50))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		call.Compile(world.Catalog, nil)
	}
}
