package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// Memberships end long ago or far ahead, so that no answer depends on the day it is asked for.
var (
	longAgo  = timestamppb.New(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	farAhead = timestamppb.New(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
)

// people is all users, a manifest for each.
func (w *world) people() iter.Seq[*toolgrantv1.Manifest] {
	return func(yield func(*toolgrantv1.Manifest) bool) {
		for i := range w.users {
			if !yield(&toolgrantv1.Manifest{Users: []*toolgrantv1.User{w.user(i)}}) {
				return
			}
		}
	}
}

func (w *world) user(i int) *toolgrantv1.User {
	r := w.random(kindUser, i)
	u := &toolgrantv1.User{UserId: fmt.Sprintf("user-%d", i)}
	for d := range 1 + r.IntN(4) {
		u.Devices = append(u.Devices, &toolgrantv1.Device{DeviceId: fmt.Sprintf("user-%d-device-%d", i, d),
			DeviceTypeId: deviceTypeID(r.IntN(w.deviceTypes))})
	}
	for _, g := range r.Perm(w.groups)[:r.IntN(min(w.groups, 2)+1)] {
		m := &toolgrantv1.Membership{GroupId: groupID(g)}
		switch r.IntN(10) {
		case 0:
			m.ExpireTime = longAgo
		case 1:
			m.StartTime, m.ExpireTime = longAgo, farAhead
		}
		u.Memberships = append(u.Memberships, m)
	}
	return u
}

// surface returns the web or one of the user's devices.
func surface(u *toolgrantv1.User, r *rand.Rand) *toolgrantv1.Surface {
	if d := r.IntN(len(u.GetDevices()) + 1); d > 0 {
		return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: u.GetDevices()[d-1].GetDeviceId()}}
	}
	return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}
}

// chat is the requests that make a chat, in order.
type chat struct {
	create  *toolgrantv1.CreateChatRequest
	avatars *toolgrantv1.SetChatAvatarsRequest // nil: no changes of Avatars
	tools   []*toolgrantv1.SetChatToolsRequest // as many as the changes of tools take
}

// maxChanges is how many changes the API accepts in one request.
const maxChanges = 1_000

// chat's requests carry the same request_id every time, so that a load can be repeated.
func (w *world) chat(i int) chat {
	r := w.random(kindChat, i)
	owner := w.user(r.IntN(w.users))
	id := fmt.Sprintf("chat-%d", i)
	c := chat{create: &toolgrantv1.CreateChatRequest{ChatId: id, UserId: owner.GetUserId(), Surface: surface(owner, r), RequestId: "create"}}
	entries := w.minLogEntries + r.IntN(w.maxLogEntries-w.minLogEntries+1)
	ofAvatars := min(r.IntN(3), entries)
	if ofAvatars > 0 {
		c.avatars = &toolgrantv1.SetChatAvatarsRequest{ChatId: id, RequestId: "avatars"}
		for range ofAvatars {
			change := &toolgrantv1.AvatarChange{AvatarId: avatarID(r.IntN(w.avatars)), Action: toolgrantv1.ChatAction_CHAT_ACTION_ENABLE}
			if r.IntN(4) == 0 {
				change.Action = toolgrantv1.ChatAction_CHAT_ACTION_DISABLE
			}
			c.avatars.Changes = append(c.avatars.Changes, change)
		}
	}
	for left := entries - ofAvatars; left > 0; left -= maxChanges {
		request := &toolgrantv1.SetChatToolsRequest{ChatId: id, RequestId: fmt.Sprintf("tools-%d", len(c.tools))}
		for range min(left, maxChanges) {
			request.Changes = append(request.Changes, w.toolChange(r))
		}
		c.tools = append(c.tools, request)
	}
	return c
}

// toolChange mostly enables, sometimes for a few turns only. Core tools cannot be disabled.
func (w *world) toolChange(r *rand.Rand) *toolgrantv1.ToolChange {
	tool := r.IntN(w.tools)
	change := &toolgrantv1.ToolChange{ToolId: w.toolID(tool), Action: toolgrantv1.ChatAction_CHAT_ACTION_ENABLE}
	switch die := r.IntN(10); {
	case die < 3 && !w.isCore(tool):
		change.Action = toolgrantv1.ChatAction_CHAT_ACTION_DISABLE
	case die == 9:
		change.TtlTurns = proto.Int32(3)
	}
	return change
}

// question draws a question: any chat, its user, and a surface of that user.
func (w *world) question(r *rand.Rand) *toolgrantv1.ResolveToolsRequest {
	number := r.IntN(w.chats)
	owner := w.user(w.random(kindChat, number).IntN(w.users)) // as chat draws it
	return &toolgrantv1.ResolveToolsRequest{ChatId: fmt.Sprintf("chat-%d", number), UserId: owner.GetUserId(), Surface: surface(owner, r)}
}

// questions draws questions. Those drawn again are left out, so there may be fewer.
func (w *world) questions(draws int) []*toolgrantv1.ResolveToolsRequest {
	r := w.random(kindQuestion, 0)
	seen := map[string]bool{}
	var questions []*toolgrantv1.ResolveToolsRequest
	for range draws {
		q := w.question(r)
		if key := q.GetChatId() + " " + q.GetSurface().GetDeviceId(); !seen[key] {
			seen[key] = true
			questions = append(questions, q)
		}
	}
	return questions
}
