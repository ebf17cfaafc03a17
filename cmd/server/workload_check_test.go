package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// check compares what a server tells with what the writers know: every acknowledged write is there as it was
// acknowledged, every other one whole or not at all, and nothing else. No writer may be at work.
func (w *workload) check(ctx context.Context, c client) {
	w.t.Helper()
	for i := range chats {
		w.checkChat(ctx, c, fmt.Sprint("c", i))
	}
	exported, err := c.ExportManifest(ctx, &v1.ExportManifestRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	titles := map[string]string{}
	for _, tool := range exported.GetManifest().GetTools() {
		titles[tool.GetToolId()] = tool.GetTitle()
	}
	for _, writer := range w.catalogue {
		first, second := titles[writer.name+".1"], titles[writer.name+".2"]
		stored, _ := strconv.Atoi(first)
		if first != second || stored < writer.acknowledged || stored > writer.tried {
			w.t.Errorf("manifests of %s: titles %q and %q, acknowledged %d, tried %d", writer.name, first, second, writer.acknowledged, writer.tried)
		}
	}
}

func (w *workload) checkChat(ctx context.Context, c client, chat string) {
	w.t.Helper()
	log := w.log(ctx, c, chat)
	got, err := c.GetChat(ctx, &v1.GetChatRequest{ChatId: chat})
	if err != nil {
		w.t.Fatal(err)
	}
	if int(got.GetChat().GetEntryCount()) != len(log) {
		w.t.Errorf("chat %s: %d entries in its log, %d counted", chat, len(log), got.GetChat().GetEntryCount())
	}
	enabled := map[string]bool{"t0": true, "t1": true} // the avatar's
	byRequest := map[string][]*v1.ChatLogEntry{}
	for i, e := range log {
		if int(e.GetSequenceNumber()) != i+1 {
			w.t.Fatalf("chat %s: entry %d is numbered %d", chat, i+1, e.GetSequenceNumber())
		}
		byRequest[e.GetRequestId()] = append(byRequest[e.GetRequestId()], e)
		if tool := e.GetToolId(); tool != "" {
			enabled[tool] = e.GetAction() == v1.ChatAction_CHAT_ACTION_ENABLE
		}
	}
	if created := byRequest["create"]; len(created) != 1 || created[0].GetAvatarId() != "avatar" {
		w.t.Errorf("chat %s: its creation wrote %v", chat, created)
	}
	delete(byRequest, "create")
	for _, writer := range w.chats {
		if writer.chat != chat {
			continue
		}
		for _, a := range writer.attempts {
			if entries := byRequest[a.request.GetRequestId()]; !a.is(entries) {
				w.t.Errorf("chat %s, request %v, acknowledged as %v: its log has %v", chat, a.request, a.acknowledged, entries)
			}
			delete(byRequest, a.request.GetRequestId())
		}
	}
	if len(byRequest) > 0 {
		w.t.Errorf("chat %s: entries that nobody wrote: %v", chat, byRequest)
	}

	var want, effective []string
	for i := range chatTools { // in the order of tool ids
		if tool := fmt.Sprint("t", i); enabled[tool] {
			want = append(want, tool)
		}
	}
	answer, err := resolve(ctx, c, chat)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, tool := range answer.GetTools() {
		effective = append(effective, tool.GetToolId())
	}
	if !slices.Equal(effective, want) || len(answer.GetWithheld()) > 0 {
		w.t.Errorf("chat %s: its log makes %v, effective are %v without %v", chat, want, effective, answer.GetWithheld())
	}
}

// is tells whether entries are what a chat's log may hold of an attempt: what was acknowledged, or all of its
// changes as one range, or, if nothing was acknowledged, nothing.
func (a *attempt) is(entries []*v1.ChatLogEntry) bool {
	if a.acknowledged == nil && len(entries) == 0 {
		return true
	}
	if a.acknowledged != nil && !slices.EqualFunc(entries, a.acknowledged.GetEntries(), equal) {
		return false
	}
	return slices.EqualFunc(entries, a.request.GetChanges(), func(e *v1.ChatLogEntry, change *v1.ToolChange) bool {
		return e.GetToolId() == change.GetToolId() && e.GetAction() == change.GetAction()
	}) && entries[len(entries)-1].GetSequenceNumber()-entries[0].GetSequenceNumber() == int32(len(entries)-1)
}

func equal(a, b *v1.ChatLogEntry) bool { return proto.Equal(a, b) }

// log reads a chat's log, page by page.
func (w *workload) log(ctx context.Context, c client, chat string) []*v1.ChatLogEntry {
	w.t.Helper()
	var entries []*v1.ChatLogEntry
	for token := ""; ; {
		page, err := c.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: chat, PageSize: 200, PageToken: token})
		if err != nil {
			w.t.Fatal(err)
		}
		entries = append(entries, page.GetEntries()...)
		if token = page.GetNextPageToken(); token == "" {
			return entries
		}
	}
}

// repeat makes every request again, so that all are acknowledged: those that were written before are answered
// as before, whether they were acknowledged or not, and write nothing.
func (w *workload) repeat(ctx context.Context, c client) {
	w.t.Helper()
	for _, writer := range w.chats {
		log := w.log(ctx, c, writer.chat)
		for _, a := range writer.attempts {
			again, err := c.SetChatTools(ctx, a.request)
			if err != nil {
				w.t.Fatalf("%v again: %v", a.request, err)
			}
			if a.acknowledged != nil && !proto.Equal(again, a.acknowledged) {
				w.t.Errorf("%v: first acknowledged as %v, then as %v", a.request, a.acknowledged, again)
			}
			written := slices.ContainsFunc(log, func(e *v1.ChatLogEntry) bool { return e.GetRequestId() == a.request.GetRequestId() })
			if isNew := int(again.GetEntries()[0].GetSequenceNumber()) > len(log); isNew == written {
				w.t.Errorf("%v: in the log before: %t, then answered %v", a.request, written, again)
			}
			if a.acknowledged == nil && written {
				w.silent++
			}
			a.acknowledged = again
		}
	}
	w.check(ctx, c) // nothing was written twice
}
