package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// operator runs toolctl against a server of its own.
type operator struct {
	ctx     context.Context
	address string
}

func serve(t *testing.T) operator {
	t.Helper()
	return operator{testkit.Context(t), node.Start(t, testkit.Database(t), node.Options{}).Address}
}

// try runs a command with a text on its standard input.
func (o operator) try(in string, args ...string) (string, error) {
	var out strings.Builder
	err := run(o.ctx, append([]string{"--addr", o.address}, args...), strings.NewReader(in), &out, io.Discard)
	return out.String(), err
}

func (o operator) run(t *testing.T, in string, args ...string) string {
	t.Helper()
	out, err := o.try(in, args...)
	if err != nil {
		t.Fatalf("toolctl %v: %v", args, explainError(err))
	}
	return out
}

// expect runs a command and compares what it prints, but for space at the ends of lines.
func (o operator) expect(t *testing.T, want, in string, args ...string) {
	t.Helper()
	same(t, o.run(t, in, args...), want)
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if trim(got) != trim(want) {
		t.Errorf("got\n%s\nwant\n%s", trim(got), trim(want))
	}
}

func trim(text string) string {
	var lines []string
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}

func TestExitStatusesTellWhatToDo(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	away := operator{o.ctx, "127.0.0.1:1"}
	for _, test := range []struct {
		want int
		o    operator
		in   string
		args []string
	}{
		{exitError, o, "", []string{"frobnicate"}},
		{exitError, o, "", []string{"resolve"}},
		{exitError, o, world, []string{"apply", "-f", "-", "-o", "xml"}},
		{exitError, o, "", []string{"apply", "-f", "no/such/file"}},
		{exitError, o, "# nothing", []string{"apply", "-f", "-"}},
		{exitRefused, o, "tools: 1", []string{"apply", "-f", "-"}},
		{exitRefused, o, "avatars: [{avatar_id: a, tool_ids: [gone]}]", []string{"apply", "-f", "-"}},
		{exitRefused, o, "", []string{"resolve", "--user", "no blanks"}},
		{exitMissing, o, "", []string{"resolve", "--user", "nobody"}},
		{exitMissing, o, "", []string{"chat", "log", "none"}},
		{exitUnavailable, away, "", []string{"resolve", "--user", "ann"}},
		{exitUnavailable, away, world, []string{"apply", "-f", "-"}},
	} {
		out, err := test.o.try(test.in, test.args...)
		if err == nil || exitStatus(err) != test.want || out != "" {
			t.Errorf("%v: got %q and %v, want status %d", test.args, out, err, test.want)
		}
	}
	help := o.run(t, "", "--help")
	if !strings.Contains(help, exitStatuses) {
		t.Errorf("the help does not tell the exit statuses:\n%s", help)
	}
}

func TestAWrongFormatIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	o := serve(t)
	if _, err := o.try(world, "apply", "-f", "-", "-o", "xml"); err == nil {
		t.Fatal("accepted")
	}
	if out := o.run(t, "", "export"); strings.TrimSpace(out) != "{}" {
		t.Errorf("something was written:\n%s", out)
	}
}

func TestStoredTextsDoNotControlTheTerminal(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	out := o.run(t, `tools: [{tool_id: weather, tool_type_id: weather, name: weather, title: "\e[31mred\u202e"}]`, "apply", "-f", "-")
	if strings.ContainsAny(out, "\x1b\u202e") || !strings.Contains(out, "red") {
		t.Errorf("got %q", out)
	}
}

func TestServerErrorsNameFields(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, "", "chat", "create", "c", "--user", "ann")
	_, err := o.try("", "chat", "disable", "c", "clock", "weather")
	same(t, explainError(err), `core tools cannot be disabled
  changes[0].tool_id: "clock" is a core tool, which cannot be disabled in a chat`)
	_, err = o.try("", "chat", "enable", "c", "weather", "none")
	same(t, explainError(err), `no such tool: "none"
  changes[1].tool_id: no such tool: "none"`)
}
