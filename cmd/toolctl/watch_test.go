package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// watched is a watch that runs.
type watched struct {
	ctx            context.Context
	lines, notices chan string
	done           chan error
	interrupt      context.CancelFunc
}

func (o operator) watch(t *testing.T, args ...string) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(o.ctx)
	w := &watched{o.ctx, make(chan string, 1000), make(chan string, 1000), make(chan error, 1), cancel}
	out, lines := io.Pipe()
	told, notices := io.Pipe()
	scan := func(from io.Reader, to chan<- string) {
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			to <- scanner.Text()
		}
	}
	go scan(out, w.lines)
	go scan(told, w.notices)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.done <- run(ctx, append([]string{"--addr", o.address, "watch"}, args...), strings.NewReader(""), lines, notices)
		_, _ = lines.Close(), notices.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w
}

// next waits for a line.
func (w *watched) next(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case line := <-from:
		return line
	case <-w.ctx.Done():
		t.Fatal("nothing more came")
		return ""
	}
}

// expect waits for a block: a head that ends with a text, and lines.
func (w *watched) expect(t *testing.T, head, want string) {
	t.Helper()
	if got := w.next(t, w.lines); !strings.HasSuffix(got, " "+head) || !strings.Contains(got, " r1-") {
		t.Errorf("the head is %q, want it to end with %q", got, head)
	}
	var got []string
	for range strings.Split(trim(want), "\n") {
		got = append(got, w.next(t, w.lines))
	}
	same(t, strings.Join(got, "\n"), want)
}

// end waits for the end.
func (w *watched) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.done:
		return err
	case <-w.ctx.Done():
		t.Fatal("it goes on")
		return nil
	}
}

func TestWatchShowsWhatChanges(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	w := o.watch(t, "--user", "ann", "--surface", "ann-phone", "--chat", "c")
	w.expect(t, "new chat with avatars helper", `
+ clock effective: core
+ weather effective: avatar helper`)
	o.run(t, `tools: [{tool_id: weather, tool_type_id: weather, name: weather, status: TOOL_STATUS_RETIRED}]`, "apply", "-f", "-")
	w.expect(t, "new chat with avatars helper", "− weather withheld: retired: “weather” has been retired and can no longer be used.")
	o.run(t, `tools: [{tool_id: weather, tool_type_id: weather, name: weather}]`, "apply", "-f", "-")
	w.expect(t, "new chat with avatars helper", "+ weather effective: avatar helper")
	o.run(t, `tools: [{tool_id: weather, tool_type_id: weather, name: weather, title: "two\nlines"}]`, "apply", "-f", "-")
	w.expect(t, "new chat with avatars helper", "~ weather effective: avatar helper")
	o.run(t, `avatars: [{avatar_id: helper}]`, "apply", "-f", "-")
	w.expect(t, "new chat with avatars helper", "− weather gone: not enabled any more, or deleted")
	o.run(t, "", "chat", "create", "c", "--user", "ann")
	if got := w.next(t, w.lines); !strings.HasSuffix(got, " chat with avatars helper") {
		t.Errorf("a chat that exists is told with %q", got)
	}
	o.run(t, "", "chat", "enable", "c", "weather", "--ttl-turns", "3")
	w.expect(t, "chat with avatars helper", "+ weather effective: chat, for 3 more turns")
	w.interrupt()
	if err := w.end(t); err != nil {
		t.Errorf("interrupted, it ended with %v", err)
	}
}

func TestWatchEndsWithTheChat(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, "", "chat", "create", "c", "--user", "ann")
	w := o.watch(t, "--user", "ann", "--chat", "c")
	w.next(t, w.lines)
	o.run(t, "", "chat", "end", "c")
	if err := w.end(t); exitStatus(err) != exitRefused || len(w.notices) > 0 {
		t.Errorf("got %v", err)
	}
	for want, args := range map[int][]string{
		exitRefused: {"--user", "ann", "--chat", "c"},
		exitMissing: {"--user", "nobody"},
		exitError:   {"--user", "ann", "--view", "half"},
	} {
		if err := o.watch(t, args...).end(t); err == nil || exitStatus(err) != want {
			t.Errorf("%v: got %v, want status %d", args, err, want)
		}
	}
	away := operator{o.ctx, "127.0.0.1:1"} // it never was there: perhaps the address is wrong
	if err := away.watch(t, "--user", "ann").end(t); exitStatus(err) != exitUnavailable {
		t.Errorf("without a server: got %v", err)
	}
}

// message waits for a line of JSON.
func (w *watched) message(t *testing.T) *toolgrantv1.WatchToolsResponse {
	t.Helper()
	line, message := w.next(t, w.lines), &toolgrantv1.WatchToolsResponse{}
	if err := protojson.Unmarshal([]byte(line), message); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["revision"] == nil || fields["activeAvatarIds"] != nil {
		t.Fatalf("%q is not an answer in snake_case: %v", line, err)
	}
	return message
}

func TestWatchForPrograms(t *testing.T) {
	ctx := testkit.Context(t)
	o := operator{ctx, node.Start(t, testkit.Database(t), node.Options{CheckpointInterval: 10 * time.Millisecond}).Address}
	o.run(t, world, "apply", "-f", "-")
	lines, documents := o.watch(t, "--user", "ann", "--view", "full", "-o", "json"), o.watch(t, "--user", "ann", "-o", "yaml")
	if first := lines.message(t); len(first.GetTools()) != 2 || !strings.HasPrefix(first.GetTools()[1].GetPrompt(), "Ask for") {
		t.Errorf("got %v", first)
	}
	if second := lines.message(t); !second.GetCheckpoint() || len(second.GetTools()) > 0 {
		t.Errorf("got %v, want a checkpoint", second)
	}
	o.run(t, `avatars: [{avatar_id: helper}]`, "apply", "-f", "-")
	for {
		if message := lines.message(t); !message.GetCheckpoint() {
			if len(message.GetTools()) != 1 {
				t.Errorf("got %v", message)
			}
			break
		}
	}
	if first := documents.next(t, documents.lines); first != "tools:" {
		t.Errorf("YAML begins with %q", first)
	}
	for documents.next(t, documents.lines) != "---" {
	}
	if line := documents.next(t, documents.lines); !strings.HasPrefix(line, "revision: r1-") {
		t.Errorf("the next document begins with %q", line)
	}
}

func TestWatchConnectsAgain(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	first := node.Start(t, url, node.Options{})
	o := operator{ctx, first.Address}
	o.run(t, world, "apply", "-f", "-")
	w := o.watch(t, "--user", "ann")
	w.expect(t, "new chat with avatars helper", "+ clock effective: core\n+ weather effective: avatar helper")
	first.Stop()
	if notice := w.next(t, w.notices); !strings.HasPrefix(notice, "toolctl: the server went away, connecting again: ") {
		t.Errorf("got %q", notice)
	}
	elsewhere := node.Start(t, url, node.Options{}) // it changes something meanwhile
	operator{ctx, elsewhere.Address}.run(t, `avatars: [{avatar_id: helper}]`, "apply", "-f", "-")
	node.Start(t, url, node.Options{Address: first.Address})
	if notice := w.next(t, w.notices); notice != "toolctl: connected again" {
		t.Errorf("got %q", notice)
	}
	w.expect(t, "new chat with avatars helper", "− weather gone: not enabled any more, or deleted")
	o.run(t, `avatars: [{avatar_id: helper, tool_ids: [weather]}]`, "apply", "-f", "-")
	w.expect(t, "new chat with avatars helper", "+ weather effective: avatar helper")
	w.interrupt()
	if err := w.end(t); err != nil {
		t.Errorf("interrupted, it ended with %v", err)
	}
	if len(w.notices) > 0 {
		t.Errorf("also told: %q", <-w.notices)
	}
}
