package main

import (
	"os/user"
	"strings"
	"testing"
)

func TestAuditShowsWhoDidWhatAndWhy(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, "{avatars: [{avatar_id: helper, title: Butler}], groups: [{group_id: premium}]}", "apply", "-f", "-", "--reason", "太多 complaints")
	// Rows as words: times and the name of who runs the tests differ.
	rows := func(args ...string) (rows []string) {
		for line := range strings.Lines(o.run(t, "", append([]string{"audit"}, args...)...)) {
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "│\n"), "│") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			if len(cells) == 7 {
				rows = append(rows, strings.Join(append(cells[:1:1], cells[3:]...), " | "))
			}
		}
		return rows
	}
	for _, test := range []struct{ args, want string }{
		{"--limit 2", `
12 | update | avatar helper | title | 太多 complaints
 |  |  | tool_ids |
11 | update | group premium | grant_tool_ids | 太多 complaints`},
		{"--kind default-avatars", "10 | create | default_avatar *,* |  |"},
		{"--kind dt --since 1h", "7 | create | device_type phone |  |"},
		{"--user ann --id ann --action create", "1 | create | user ann |  |"},
		{"--until 2020-01-01", ""},
		{"--since 2020-01-01T00:00:00+08:00 --kind approval", ""},
	} {
		got := rows(strings.Fields(test.args)...)
		if want := "# | ACTION | OBJECT | CHANGED | REASON\n" + strings.Trim(test.want, "\n"); trim(strings.Join(got, "\n")) != trim(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.args, strings.Join(got, "\n"), want)
		}
	}
	if me, err := user.Current(); err == nil {
		if got := rows("--actor", "claimed:"+me.Username, "--limit", "0"); len(got) != 14 {
			t.Errorf("of %s: got %d rows", me.Username, len(got))
		}
	}
	out := o.run(t, "", "audit", "--limit", "2", "-o", "json")
	for _, want := range []string{`"title": "Butler"`, `"title": "Helper"`, `"reason": "太多 complaints"`, `"next_page_token"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	if out := o.run(t, "", "audit", "--limit", "2"); !strings.HasSuffix(out, "there are older ones: --limit 0 shows all\n") {
		t.Errorf("got %s", out)
	}
}

func TestAuditRefusesWhatItDoesNotKnow(t *testing.T) {
	for command, want := range map[string]string{
		"audit --action burn":        `--action: no such action "burn": it is one of create, update, delete`,
		"audit --kind device":        "--kind: devices are parts of their user, and so are their changes: give --kind user",
		"audit --since yesterday":    `--since: "yesterday" is no duration (24h), day (2026-05-01) or RFC 3339 time`,
		"audit --until 2026-13-01":   `--until: "2026-13-01" is no duration`,
		"audit --limit -1":           "--limit: must not be negative",
		"audit --since 1h tools":     `unknown command "tools" for "toolctl audit"`,
		"audit --action unspecified": `--action: no such action`,
	} {
		o := operator{t.Context(), "127.0.0.1:1"}
		if _, err := o.try("", strings.Fields(command)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", command, err, want)
		}
	}
}
