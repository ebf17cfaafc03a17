package main

import (
	"strings"
	"testing"
)

func TestAChatFromBeginningToEnd(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, "", "chat", "create", "c", "--user", "ann", "--surface", "ann-phone")
	enabled := o.run(t, "", "chat", "enable", "c", "weather", "--turn", "2", "--ttl-turns", "3", "--request-id", "again")
	same(t, o.run(t, "", "chat", "enable", "c", "weather", "--turn", "2", "--ttl-turns", "3", "--request-id", "again"), enabled)
	o.run(t, "", "chat", "disable", "c", "weather", "--turn", "3")
	o.run(t, "", "chat", "avatar", "c", "disable", "helper")

	var got []string
	for _, row := range rows(o.run(t, "", "chat", "log", "c")) {
		got = append(got, strings.Join(row[:5], " "))
	}
	same(t, strings.Join(got, "\n"), `1 0 enable helper
2 2 enable weather 3 turns
3 3 disable weather
4 3 disable helper`)
	o.expect(t, `
┌───────┬───────┬───────────┬──────┐
│ TOOL  │ NAME  │ STATE     │ WHY  │
├───────┼───────┼───────────┼──────┤
│ clock │ clock │ effective │ core │
└───────┴───────┴───────────┴──────┘`, "", "resolve", "--chat", "c", "--user", "ann", "--surface", "ann-phone")
	if out := o.run(t, "", "explain", "weather", "--chat", "c", "--user", "ann"); !strings.Contains(out, "available: true, enabled: false, effective: false") {
		t.Errorf("got %s", out)
	}

	if out := o.run(t, "", "chat", "end", "c"); !strings.HasPrefix(out, "chat c ended at 2") {
		t.Errorf("got %s", out)
	}
	if row := rows(o.run(t, "", "chat", "get", "c"))[0]; row[0] != "c" || row[6] == "" {
		t.Errorf("got %q", row)
	}
	if _, err := o.try("", "chat", "enable", "c", "weather"); exitStatus(err) != exitRefused {
		t.Errorf("writing to a chat that ended: got %v", err)
	}
}

func TestEveryAnswerComesInEveryFormat(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, "", "chat", "create", "c", "--user", "ann")
	for _, command := range []string{
		"get tools", "get user ann", "resolve --user ann", "explain weather --user ann", "chat create d --user ann --request-id d",
		"chat enable c weather", "chat disable c weather", "chat avatar c disable helper", "chat get c", "chat log c", "export", "chat end c --request-id e",
	} {
		for _, format := range formats {
			out := o.run(t, "", append(strings.Fields(command), "-o", format)...)
			begins := map[string]bool{"table": strings.HasPrefix(out, "┌") || strings.HasPrefix(out, "chat c ended") || command == "export",
				"json": strings.HasPrefix(out, "{\n"), "yaml": strings.Contains(out, ":\n") || strings.Contains(out, ": ")}
			if !begins[format] {
				t.Errorf("%s -o %s: got %s", command, format, out)
			}
		}
	}
}

// rows are the cells of a table without its head.
func rows(table string) [][]string {
	var rows [][]string
	for line := range strings.Lines(table) {
		if cells, ok := strings.CutPrefix(line, "│"); ok {
			var row []string
			for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(cells), "│"), "│") {
				row = append(row, strings.TrimSpace(cell))
			}
			rows = append(rows, row)
		}
	}
	return rows[1:]
}
