package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const (
	chats            = 3
	writersPerChat   = 2
	catalogueWriters = 2
	chatTools        = 10 // t0 … t9, which chats turn on and off
	batch            = 3  // changes per request
)

var web = &v1.Surface{Kind: &v1.Surface_Web{Web: &v1.Web{}}}

// world is what the workload works on: one user, whose chats begin with an avatar's tools t0 and t1.
func world() *v1.Manifest {
	m := &v1.Manifest{
		ToolTypes:      []*v1.ToolType{{ToolTypeId: "type", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}},
		DeviceTypes:    []*v1.DeviceType{{DeviceTypeId: "phone"}},
		Avatars:        []*v1.Avatar{{AvatarId: "avatar", ToolIds: []string{"t0", "t1"}}},
		DefaultAvatars: []*v1.DefaultAvatar{{AvatarId: "avatar"}},
		Users:          []*v1.User{{UserId: "u", Devices: []*v1.Device{{DeviceId: "u-phone", DeviceTypeId: "phone"}}}},
	}
	for i := range chatTools {
		m.Tools = append(m.Tools, tool(fmt.Sprint("t", i), ""))
		m.DeviceTypes[0].ToolIds = append(m.DeviceTypes[0].ToolIds, fmt.Sprint("t", i))
	}
	return m
}

func tool(id, title string) *v1.Tool {
	return &v1.Tool{ToolId: id, ToolTypeId: "type", Name: id, Title: title}
}

func resolve(ctx context.Context, c client, chat string) (*v1.ResolveToolsResponse, error) {
	return c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: chat, UserId: "u", Surface: web})
}

// attempt is a request to write to a chat.
type attempt struct {
	request      *v1.SetChatToolsRequest
	acknowledged *v1.SetChatToolsResponse // nil: nobody told whether it was written
}

// chatWriter writes to a chat, a request after the other.
type chatWriter struct {
	chat, name string
	attempts   []*attempt
}

// catalogueWriter raises the titles of two tools of its own, always both at once.
type catalogueWriter struct {
	name                string
	tried, acknowledged int
}

func (w *catalogueWriter) manifest(title int) *v1.Manifest {
	return &v1.Manifest{Tools: []*v1.Tool{tool(w.name+".1", fmt.Sprint(title)), tool(w.name+".2", fmt.Sprint(title))}}
}

// workload is several writers, and what they know of their writes.
type workload struct {
	t         *testing.T
	chats     []*chatWriter
	catalogue []*catalogueWriter
	done      atomic.Int64 // requests acknowledged
	failed    atomic.Int64 // requests that failed as they may
	silent    int          // of those, requests that were written all the same
}

// newWorkload creates the world and its chats.
func newWorkload(ctx context.Context, t *testing.T, c client) *workload {
	t.Helper()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	w := &workload{t: t}
	for i := range chats {
		chat := fmt.Sprint("c", i)
		if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: chat, UserId: "u", Surface: web, RequestId: "create"}); err != nil {
			t.Fatal(err)
		}
		for j := range writersPerChat {
			w.chats = append(w.chats, &chatWriter{chat: chat, name: fmt.Sprint("w", j)})
		}
	}
	for i := range catalogueWriters {
		w.catalogue = append(w.catalogue, &catalogueWriter{name: fmt.Sprint("m", i)})
	}
	return w
}

// start lets all writers write, each to one of the servers, until stop is called, which returns when the last
// one has ended. Errors that are not expected fail the test.
func (w *workload) start(ctx context.Context, expected func(error) bool, servers ...client) (stop func()) {
	stopped := make(chan struct{})
	var running sync.WaitGroup
	write := func(i int, once func(client) error) {
		running.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
				}
				err := once(servers[i%len(servers)])
				switch {
				case err == nil:
					w.done.Add(1)
				case expected(err):
					w.failed.Add(1)
					time.Sleep(50 * time.Millisecond)
				default:
					w.t.Errorf("a write failed: %v %v", err, status.Convert(err).Details())
					return
				}
			}
		})
	}
	for i, writer := range w.chats {
		write(i, func(c client) error { return writer.write(ctx, c) })
	}
	for i, writer := range w.catalogue {
		write(i, func(c client) error { return writer.write(ctx, c) })
	}
	return sync.OnceFunc(func() {
		close(stopped)
		running.Wait()
	})
}

// write makes another request. After a failure it is as likely the same again.
func (w *chatWriter) write(ctx context.Context, c client) error {
	if len(w.attempts) == 0 || w.attempts[len(w.attempts)-1].acknowledged != nil || rand.IntN(2) == 0 {
		request := &v1.SetChatToolsRequest{ChatId: w.chat, RequestId: fmt.Sprintf("%s-%d", w.name, len(w.attempts)+1)}
		for _, n := range rand.Perm(chatTools)[:batch] {
			action := v1.ChatAction_CHAT_ACTION_ENABLE
			if rand.IntN(2) == 0 {
				action = v1.ChatAction_CHAT_ACTION_DISABLE
			}
			request.Changes = append(request.Changes, &v1.ToolChange{ToolId: fmt.Sprint("t", n), Action: action})
		}
		w.attempts = append(w.attempts, &attempt{request: request})
	}
	last := w.attempts[len(w.attempts)-1]
	response, err := c.SetChatTools(ctx, last.request)
	if err == nil {
		last.acknowledged = response
	}
	return err
}

func (w *catalogueWriter) write(ctx context.Context, c client) error {
	w.tried++
	_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: w.manifest(w.tried)})
	if err == nil {
		w.acknowledged = w.tried
	}
	return err
}

// awaitWrites waits until so many more writes were acknowledged, and a little longer, by chance.
func (w *workload) awaitWrites(n int64) {
	w.t.Helper()
	goal := w.done.Load() + n
	await(w.t, "writes", func() bool { return w.t.Failed() || w.done.Load() >= goal })
	time.Sleep(rand.N(200 * time.Millisecond))
}

func (w *workload) report() {
	w.t.Logf("%d writes acknowledged, %d not, %d of them written", w.done.Load(), w.failed.Load(), w.silent)
}

// databaseAway tells whether an error says so, as the API promises.
func databaseAway(err error) bool {
	if status.Code(err) != codes.Unavailable {
		return false
	}
	return slices.ContainsFunc(status.Convert(err).Details(), func(detail any) bool {
		info, ok := detail.(*errdetails.ErrorInfo)
		return ok && info.GetDomain() == "toolgrant" && info.GetReason() == v1.ErrorReason_ERROR_REASON_DATABASE_UNAVAILABLE.String()
	})
}

// serverAway tells whether an error is that of a server that cannot be reached.
func serverAway(err error) bool {
	return status.Code(err) == codes.Unavailable && len(status.Convert(err).Details()) == 0
}

// nothing is what may go wrong when nothing is broken.
func nothing(error) bool { return false }
