package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// emulator is as much of a terminal as is written to here.
type emulator struct {
	mu     sync.Mutex
	width  int
	lines  [][]rune // those that scrolled away as well
	row    int
	column int
	rest   string // the beginning of a sequence
}

var sequence = regexp.MustCompile(`^\x1b\[(\d*)([A-Z])`)

// Write implements io.Writer.
func (e *emulator) Write(data []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := e.rest + string(data)
	for e.rest = ""; text != ""; {
		if match := sequence.FindStringSubmatch(text); match != nil {
			text = text[len(match[0]):]
			switch n, _ := strconv.Atoi(match[1]); match[2] {
			case "A":
				e.row = max(e.row-n, 0)
			case "J":
				e.lines = e.lines[:min(e.row+1, len(e.lines))]
				if e.row < len(e.lines) {
					e.lines[e.row] = e.lines[e.row][:min(e.column, len(e.lines[e.row]))]
				}
			default:
				return 0, fmt.Errorf("unknown sequence %q", match[0])
			}
			continue
		}
		if text[0] == '\x1b' || len(text) < 4 && !strings.HasSuffix(text, "\n") {
			e.rest = text
			break
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		e.put(r)
	}
	return len(data), nil
}

func (e *emulator) put(r rune) {
	switch r {
	case '\r':
		e.column = 0
	case '\n':
		e.row++
		e.column = 0
	default:
		if e.column == e.width {
			e.row, e.column = e.row+1, 0
		}
		for len(e.lines) <= e.row {
			e.lines = append(e.lines, nil)
		}
		line := e.lines[e.row]
		for len(line) <= e.column {
			line = append(line, ' ')
		}
		line[e.column] = r
		e.lines[e.row] = line
		e.column++
	}
}

// String is what can be seen.
func (e *emulator) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, line := range e.lines {
		b.WriteString(string(line) + "\n")
	}
	return trim(b.String())
}

func TestAScreenIsDrawnInOnePlace(t *testing.T) {
	width, height := 10, 6
	e := &emulator{width: width}
	s := screen{out: e, size: func() (int, int, error) { return width, height, nil }}
	draw := func(last, want string, lines ...string) {
		t.Helper()
		if err := s.draw(lines, last); err != nil {
			t.Fatal(err)
		}
		same(t, e.String(), want)
	}
	_, _ = io.WriteString(e, "before\n")
	draw("end", "before\na\nb\nend", "a", "b")
	draw("end", "before\na\nend", "a")
	draw("end", "before\n123456789…\n1234567890\nend", "12345678901", "1234567890")
	draw("end", "before\na\nb\nc\n… 2 more …\nend", "a", "b", "c", "d", "e")
	if err := s.clear(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(e, "notice\n")
	draw("1234567890", "before\nnotice\nx\n1234567890", "x")

	// The terminal became half as wide, and wrapped what was there.
	width, e.width = 5, 5
	e.lines, e.row, e.column = nil, 0, 0
	_, _ = io.WriteString(e, "before\nx\n1234567890\n")
	draw("end", "befor\ne\ny\nend", "y")
}

func TestWatchOnATerminal(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{})
	o := operator{ctx, n.Address}
	o.run(t, world, "apply", "-f", "-")
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer master.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	e := &emulator{width: 90}
	go func() { _, _ = io.Copy(e, master) }()
	watching, interrupt := context.WithCancel(ctx)
	defer interrupt()
	done := make(chan error, 1)
	go func() {
		done <- run(watching, []string{"--addr", o.address, "watch", "--user", "ann"}, strings.NewReader(""), terminal, terminal)
		_ = terminal.Close()
	}()
	shown := func(want string) {
		t.Helper()
		pattern := regexp.MustCompile("^" + strings.NewReplacer("TIME", `\d\d:\d\d:\d\d`, "REV", "…[0-9a-f-]{8}", "CAUSE", `[^\n]+`).
			Replace(regexp.QuoteMeta(trim(want))) + "$")
		for !pattern.MatchString(e.String()) {
			select {
			case err := <-done:
				t.Fatalf("it ended with %v", err)
			case <-ctx.Done():
				t.Fatalf("got\n%s\nwant\n%s", e, want)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	shown(`
┌───┬─────────┬─────────┬───────────┬───────────────┐
│   │ TOOL    │ NAME    │ STATE     │ WHY           │
├───┼─────────┼─────────┼───────────┼───────────────┤
│   │ clock   │ clock   │ effective │ core          │
│   │ weather │ weather │ effective │ avatar helper │
└───┴─────────┴─────────┴───────────┴───────────────┘
live · last change TIME · revision REV · new chat with avatars helper`)
	o.run(t, `tools: [{tool_id: weather, tool_type_id: weather, name: weather, status: TOOL_STATUS_RETIRED}]`, "apply", "-f", "-")
	shown(`
┌───┬─────────┬───────┬───────────────────┬──────────────────────────────────────────────┐
│   │ TOOL    │ NAME  │ STATE             │ WHY                                          │
├───┼─────────┼───────┼───────────────────┼──────────────────────────────────────────────┤
│   │ clock   │ clock │ effective         │ core                                         │
│ − │ weather │       │ withheld: retired │ “weather” has been retired and can no longer │
│   │         │       │                   │ be used.                                     │
└───┴─────────┴───────┴───────────────────┴──────────────────────────────────────────────┘
live · last change TIME · revision REV · new chat with avatars helper`)
	const gone = `
┌───┬─────────┬───────┬───────────┬──────────────────────────────────┐
│   │ TOOL    │ NAME  │ STATE     │ WHY                              │
├───┼─────────┼───────┼───────────┼──────────────────────────────────┤
│   │ clock   │ clock │ effective │ core                             │
│ − │ weather │       │ gone      │ not enabled any more, or deleted │
└───┴─────────┴───────┴───────────┴──────────────────────────────────┘
`
	o.run(t, `avatars: [{avatar_id: helper}]`, "apply", "-f", "-")
	shown(gone + "live · last change TIME · revision REV · new chat with avatars helper")
	n.Stop()
	shown("toolctl: the server went away, connecting again: CAUSE" + gone +
		"not live: the server is away · last change TIME · revision REV · new chat with …")
	node.Start(t, url, node.Options{Address: o.address})
	shown("toolctl: the server went away, connecting again: CAUSE\ntoolctl: connected again" + gone +
		"live · last change TIME · revision REV · new chat with avatars helper")
	interrupt()
	if err := <-done; err != nil {
		t.Errorf("interrupted, it ended with %v", err)
	}
}
