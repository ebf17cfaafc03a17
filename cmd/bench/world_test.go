package main

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// testWorld returns a world of the default sizes, unless change says otherwise.
func testWorld(seed uint64, change func(*sizes)) *world {
	w := &world{seed: seed}
	for _, one := range w.all() {
		*one.value = one.otherwise
	}
	if change != nil {
		change(&w.sizes)
	}
	return w
}

// changes is how many entries follow that of the default Avatar.
func (c chat) changes() int {
	count := len(c.avatars.GetChanges())
	for _, request := range c.tools {
		count += len(request.GetChanges())
	}
	return count
}

// everything is all that a world is made of, in order.
func everything(w *world) []proto.Message {
	var all []proto.Message
	for m := range w.catalogue() {
		all = append(all, m)
	}
	for m := range w.people() {
		all = append(all, m)
	}
	for i := range w.chats {
		c := w.chat(i)
		all = append(all, c.create, c.avatars)
		for _, request := range c.tools {
			all = append(all, request)
		}
	}
	for _, q := range w.questions(50) {
		all = append(all, q)
	}
	return all
}

func TestASeedMakesAlwaysTheSameWorld(t *testing.T) {
	small := func(s *sizes) { s.users, s.chats = 100, 100 }
	first := everything(testWorld(1, small))
	if !slices.EqualFunc(first, everything(testWorld(1, small)), proto.Equal) {
		t.Error("one seed made two worlds")
	}
	if slices.EqualFunc(first, everything(testWorld(2, small)), proto.Equal) {
		t.Error("two seeds made one world")
	}
}

func TestTheDefaultWorldIsAsDescribed(t *testing.T) {
	w := testWorld(1, nil)
	core, limited, described := 0, 0, 0
	for i := range w.tools {
		tool := w.tool(i)
		described += len(tool.GetDescription())
		if tool.GetCore() {
			core++
		}
		if len(tool.GetRequiredCapabilities()) > 0 {
			limited++
		}
	}
	if mean := described / w.tools; core != 5 || limited < 50 || limited > 200 || mean < 150 || mean > 250 {
		t.Errorf("%d core tools, %d that need a capability, descriptions of %d bytes", core, limited, mean)
	}
	var devices, memberships [5]int
	for i := range w.users {
		u := w.user(i)
		devices[len(u.GetDevices())]++
		memberships[len(u.GetMemberships())]++
	}
	if devices[0] > 0 || slices.Min(devices[1:]) < w.users/5 {
		t.Errorf("users by devices: %v", devices)
	}
	if memberships[3]+memberships[4] > 0 || slices.Min(memberships[:3]) < w.users/5 {
		t.Errorf("users by memberships: %v", memberships)
	}
	var entries [11]int
	for i := range w.chats {
		entries[w.chat(i).changes()]++
	}
	if slices.Min(entries[:]) < w.chats/20 {
		t.Errorf("chats by entries: %v", entries)
	}
}

func TestBatchesLoseNothingAndStaySmall(t *testing.T) {
	w := testWorld(1, func(s *sizes) { s.tools, s.deviceTypes, s.toolsPerDeviceType = 3_000, 100, 3_000 })
	all, joined, objects := &toolgrantv1.Manifest{}, &toolgrantv1.Manifest{}, 0
	for one := range w.catalogue() {
		proto.Merge(all, one)
	}
	for count, batch := range batches(w.catalogue()) {
		if size := proto.Size(batch); count > batchObjects || size > batchBytes {
			t.Errorf("a batch of %d objects, %d bytes", count, size)
		}
		proto.Merge(joined, batch)
		objects += count
	}
	if !proto.Equal(all, joined) || objects != w.toolTypes()+w.tools+w.deviceTypes+w.groups+w.avatars+1 {
		t.Errorf("%d objects in batches, not all of the catalogue", objects)
	}
}
