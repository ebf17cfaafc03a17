package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// live shows a table that is kept up to date, and below it how up to date it is.
type live struct {
	notices  noticesTo
	screen   screen
	last     *toolgrantv1.WatchToolsResponse
	tools    []markedTool
	changed  time.Time
	revision string
	stale    bool
	lost     bool
}

func (l *live) notice(text string, live bool) error {
	if err := l.screen.clear(); err != nil {
		return err
	}
	if err := l.notices.notice(text, live); err != nil {
		return err
	}
	l.lost = !live
	return l.draw()
}

func (l *live) show(message *toolgrantv1.WatchToolsResponse) error {
	l.revision, l.stale = message.GetRevision(), message.GetStale()
	switch {
	case message.GetCheckpoint():
	case l.last == nil:
		l.tools = compare(toldTools(message), toldTools(message)) // the first state is no change
		l.last, l.changed = message, time.Now()
	case !sameAnswer(l.last, message):
		l.tools = compare(toldTools(l.last), toldTools(message))
		l.last, l.changed = message, time.Now()
	}
	return l.draw()
}

func (l *live) draw() error {
	var rendered strings.Builder
	t := newTable(&rendered, "", "TOOL", "NAME", "STATE", "WHY")
	widest := [3]int{} // id, name, state
	for _, tool := range l.tools {
		t.AppendRow(table.Row{tool.mark, tool.id, tool.name, tool.state, oneLine(tool.why)})
		for i, cell := range []string{tool.id, tool.name, tool.state} {
			widest[i] = max(widest[i], text.StringWidthWithoutEscSequences(cell))
		}
	}
	const frame, least = 17, 20 // what the mark, lines and blanks take; what a reason needs in any case
	width, _ := l.screen.measure()
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 5, WidthMax: max(least, width-frame-widest[0]-widest[1]-widest[2]), WidthMaxEnforcer: text.WrapSoft}})
	t.Render()
	return l.screen.draw(strings.Split(strings.TrimRight(printable.String(rendered.String()), "\n"), "\n"), printable.String(l.status()))
}

// status is the last line. What matters most stands first, where it is not cut.
func (l *live) status() string {
	state := "live"
	switch {
	case l.lost:
		state = "not live: the server is away"
	case l.stale:
		state = "live, but may be out of date: the server cannot reach its database"
	}
	return fmt.Sprintf("%s · last change %s · revision %s · %s", state, l.changed.Format(time.TimeOnly), shortened(l.revision), headOf(l.last))
}

// shortened is a revision's end: its beginning names the database, which is always the same.
func shortened(revision string) string {
	const shown = 8
	runes := []rune(revision)
	if len(runes) <= shown {
		return revision
	}
	return "…" + string(runes[len(runes)-shown:])
}
