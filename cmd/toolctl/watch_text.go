package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// documents shows messages as they are: lines of JSON, or documents of YAML.
type documents struct {
	notices noticesTo
	out     io.Writer
	format  format
	begun   bool
}

func (d *documents) notice(text string, live bool) error { return d.notices.notice(text, live) }

func (d *documents) show(message *toolgrantv1.WatchToolsResponse) error { return d.write(message) }

func (d *documents) write(message proto.Message) error {
	data, err := toJSON(message)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if d.format == formatJSON {
		err = json.Compact(&out, data) // protojson varies its space on purpose
		out.WriteByte('\n')
	} else {
		if d.begun {
			out.WriteString("---\n")
		}
		err = writeYAML(&out, data)
	}
	if err != nil {
		return err
	}
	d.begun = true
	_, err = out.WriteTo(d.out)
	return err
}

// mark is how a tool differs from the answer before.
type mark string

const (
	unchanged mark = " "
	appeared  mark = "+" // is effective, and was not
	vanished  mark = "−" // is withheld or gone, and was not
	altered   mark = "~" // is told otherwise
)

type markedTool struct {
	toldTool
	mark mark
}

// compare marks the tools of an answer, and adds those that are gone.
func compare(before, now []toldTool) []markedTool {
	old := make(map[string]toldTool, len(before))
	for _, tool := range before {
		old[tool.id] = tool
	}
	var marked []markedTool
	for _, tool := range now {
		was, known := old[tool.id]
		delete(old, tool.id)
		marked = append(marked, markedTool{tool, markOf(was, known, tool)})
	}
	for _, tool := range before {
		if _, gone := old[tool.id]; gone {
			tool.state, tool.why = "gone", "not enabled any more, or deleted"
			marked = append(marked, markedTool{tool, vanished})
		}
	}
	return marked
}

func markOf(was toldTool, known bool, tool toldTool) mark {
	switch {
	case known && was.effective == tool.effective:
		if proto.Equal(was.message, tool.message) {
			return unchanged
		}
		return altered
	case tool.effective:
		return appeared
	}
	return vanished
}

// sameAnswer tells whether two messages differ at most in how fresh they are.
func sameAnswer(a, b *toolgrantv1.WatchToolsResponse) bool {
	return proto.Equal(answerAlone(a), answerAlone(b))
}

func answerAlone(r *toolgrantv1.WatchToolsResponse) *toolgrantv1.WatchToolsResponse {
	return &toolgrantv1.WatchToolsResponse{Tools: r.GetTools(), Withheld: r.GetWithheld(), ActiveAvatarIds: r.GetActiveAvatarIds(), NewChat: r.GetNewChat()}
}

// headOf says in a line what an answer is about as a whole.
func headOf(r *toolgrantv1.WatchToolsResponse) string {
	chat := "chat"
	if r.GetNewChat() {
		chat = "new chat"
	}
	if len(r.GetActiveAvatarIds()) == 0 {
		return chat + " without avatars"
	}
	return chat + " with avatars " + strings.Join(r.GetActiveAvatarIds(), ", ")
}

// blocks shows the lines that changed.
type blocks struct {
	notices noticesTo
	out     io.Writer
	last    *toolgrantv1.WatchToolsResponse
}

func (b *blocks) notice(text string, live bool) error { return b.notices.notice(text, live) }

func (b *blocks) show(message *toolgrantv1.WatchToolsResponse) error {
	if message.GetCheckpoint() || b.last != nil && sameAnswer(b.last, message) {
		return nil
	}
	var block strings.Builder
	fmt.Fprintf(&block, "%s %s %s\n", time.Now().Format(time.RFC3339), message.GetRevision(), headOf(message))
	for _, tool := range compare(toldTools(b.last), toldTools(message)) {
		if tool.mark != unchanged {
			block.WriteString(oneLine(fmt.Sprintf("%s %s %s: %s", tool.mark, tool.id, tool.state, tool.why)) + "\n")
		}
	}
	b.last = message
	_, err := io.WriteString(b.out, printable.String(block.String()))
	return err
}

// oneLine makes a line of a text that may have several, or tabs, which take nobody knows how much room.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
