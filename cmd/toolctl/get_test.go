package main

import (
	"fmt"
	"strings"
	"testing"
)

// slashes is more of a world, with ids that hold slashes.
const slashes = `
default_avatars:
  - {avatar_id: helper, device_type_id: phone}
  - {avatar_id: helper, user_id: org/eve}
  - {avatar_id: helper, user_id: org/eve, device_type_id: phone}
users:
  - {user_id: org/eve, devices: [{device_id: eve/phone, device_type_id: phone}], memberships: [{group_id: premium}]}
`

func TestGetShowsAKind(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, slashes, "apply", "-f", "-")
	o.expect(t, `
┌─────────┬───────────┬─────────────┐
│ USER ID │ DEVICES   │ MEMBERSHIPS │
├─────────┼───────────┼─────────────┤
│ ann     │ ann-phone │ premium     │
│ bob     │           │             │
│ org/eve │ eve/phone │ premium     │
└─────────┴───────────┴─────────────┘`, "", "get", "users")
	o.expect(t, `
┌─────────┬────────────────┬───────────┐
│ USER ID │ DEVICE TYPE ID │ AVATAR ID │
├─────────┼────────────────┼───────────┤
│ *       │ *              │ helper    │
│ *       │ phone          │ helper    │
│ org/eve │ *              │ helper    │
│ org/eve │ phone          │ helper    │
└─────────┴────────────────┴───────────┘`, "", "get", "default_avatars")
	o.expect(t, `
┌─────────┬──────────┬────────────┬──────────────────────┐
│ USER ID │ GROUP ID │ START TIME │ EXPIRE TIME          │
├─────────┼──────────┼────────────┼──────────────────────┤
│ ann     │ premium  │            │ 2030-01-01T00:00:00Z │
└─────────┴──────────┴────────────┴──────────────────────┘`, "", "get", "memberships", "--user", "ann")
	for _, k := range kinds {
		if !k.unlisted && !k.ofUser() {
			o.run(t, "", "get", k.name)
		}
	}
}

func TestGetByIDsOfTwoParts(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.run(t, slashes, "apply", "-f", "-")
	o.expect(t, `
┌─────────┬────────────────┬───────────┐
│ USER ID │ DEVICE TYPE ID │ AVATAR ID │
├─────────┼────────────────┼───────────┤
│ *       │ phone          │ helper    │
│ org/eve │ *              │ helper    │
│ *       │ *              │ helper    │
└─────────┴────────────────┴───────────┘`, "", "get", "default-avatar", "*,phone", "org/eve,*", "*,*")
	device := o.run(t, "", "get", "device", "org/eve,eve/phone")
	same(t, o.run(t, "", "get", "device", "--user", "org/eve", "eve/phone"), device)
	if !strings.Contains(device, "eve/phone") {
		t.Errorf("got %s", device)
	}
	if out := o.run(t, "", "get", "membership", "org/eve,premium", "-o", "yaml"); !strings.HasPrefix(out, "membership:\n    group_id: premium\n") {
		t.Errorf("got %s", out)
	}
	for _, id := range []string{"org/eve/premium", "org/eve", ",premium", "org/eve,"} {
		if _, err := o.try("", "get", "membership", id); err == nil || !strings.Contains(err.Error(), "names no membership") {
			t.Errorf("%s: got %v", id, err)
		}
	}
}

func TestGetRefusesWhatDoesNotGoTogether(t *testing.T) {
	for command, want := range map[string]string{
		"get stars":                               `no such kind "stars": it is one of tool-types, tools,`,
		"get chats":                               "chats cannot be listed: name one",
		"get devices":                             "devices are listed by user: give --user",
		"get tools --user ann":                    "--user does not go with tools",
		"get default-avatars --user ann *,phone":  "--user does not go with default-avatars",
		"get tools --limit -1":                    "--limit: must not be negative",
		"get membership --user ann premium -o ym": `invalid argument "ym" for "-o, --output" flag: must be table, json, yaml`,
	} {
		o := operator{t.Context(), "127.0.0.1:1"}
		if _, err := o.try("", strings.Fields(command)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", command, err, want)
		}
	}
}

func TestGetReadsAllPages(t *testing.T) {
	o := serve(t)
	var users strings.Builder
	users.WriteString("users:\n")
	for i := range pageSize + 5 {
		fmt.Fprintf(&users, "  - {user_id: u%04d}\n", i)
	}
	o.run(t, users.String(), "apply", "-f", "-")
	for limit, want := range map[int]int{0: pageSize + 5, 3: 3, pageSize: pageSize, pageSize + 2: pageSize + 2} {
		out := o.run(t, "", "get", "users", "-o", "yaml", "--limit", fmt.Sprint(limit))
		if got := strings.Count(out, "user_id:"); got != want {
			t.Errorf("limit %d: got %d users, want %d", limit, got, want)
		}
		if more := strings.Contains(out, "next_page_token"); more != (want < pageSize+5) {
			t.Errorf("limit %d: tells that there are more: %t", limit, more)
		}
	}
}

func TestSeveralObjectsAreSeveralDocuments(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	out := o.run(t, "", "get", "avatar", "helper", "helper", "-o", "yaml")
	if documents := strings.Split(out, "---\n"); len(documents) != 2 || documents[0] != documents[1] {
		t.Errorf("got %s", out)
	}
	out = o.run(t, "", "get", "device", "ann,ann-phone", "-o", "json")
	if want := "{\n  \"device\": {\n    \"device_id\": \"ann-phone\",\n    \"device_type_id\": \"phone\"\n  },\n"; !strings.HasPrefix(out, want) {
		t.Errorf("got %s", out)
	}
}
