package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const callsPrefix = "bench-calls"

// Functions, by the rules of their tools.
const (
	callFree    = "bench_calls_free"
	callCounted = "bench_calls_counted"
)

// writeCallsWorld writes two tools among a hundred others, and users who may use all of them.
func writeCallsWorld(ctx context.Context, conn *grpc.ClientConn, users int) error {
	const others = 98
	m := &toolgrantv1.Manifest{
		ToolTypes:      []*toolgrantv1.ToolType{{ToolTypeId: callsPrefix, Source: toolgrantv1.ToolSource_TOOL_SOURCE_NATIVE, ToolClass: "Bench"}},
		DeviceTypes:    []*toolgrantv1.DeviceType{{DeviceTypeId: callsPrefix}},
		Avatars:        []*toolgrantv1.Avatar{{AvatarId: callsPrefix}},
		DefaultAvatars: []*toolgrantv1.DefaultAvatar{},
	}
	config, err := structpb.NewStruct(map[string]any{"region": "here", "depth": 3})
	if err != nil {
		return err
	}
	add := func(name string, quotas ...*toolgrantv1.Quota) {
		m.Tools = append(m.Tools, &toolgrantv1.Tool{ToolId: callsPrefix + "." + name, ToolTypeId: callsPrefix, Name: name, Config: config, Quotas: quotas})
		m.DeviceTypes[0].ToolIds = append(m.DeviceTypes[0].ToolIds, callsPrefix+"."+name)
		m.Avatars[0].ToolIds = append(m.Avatars[0].ToolIds, callsPrefix+"."+name)
	}
	add(callFree)
	add(callCounted, &toolgrantv1.Quota{QuotaId: callsPrefix, Scope: toolgrantv1.QuotaScope_QUOTA_SCOPE_USER, Unit: toolgrantv1.QuotaUnit_QUOTA_UNIT_CALLS,
		Limit: 1_000_000_000_000, Window: &toolgrantv1.QuotaWindow{Kind: &toolgrantv1.QuotaWindow_Fixed{Fixed: durationpb.New(time.Minute)}}})
	for i := range others {
		add("bench_calls_other_" + strconv.Itoa(i))
	}
	if err := apply(ctx, conn, m); err != nil {
		return err
	}
	const batch = 1000
	for first := 0; first < users; first += batch {
		m := &toolgrantv1.Manifest{}
		for i := first; i < min(users, first+batch); i++ {
			user := callsUser(i)
			m.Users = append(m.Users, &toolgrantv1.User{UserId: user, Devices: []*toolgrantv1.Device{{DeviceId: user, DeviceTypeId: callsPrefix}}})
			m.DefaultAvatars = append(m.DefaultAvatars, &toolgrantv1.DefaultAvatar{AvatarId: callsPrefix, UserId: user})
		}
		if err := apply(ctx, conn, m); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, conn *grpc.ClientConn, m *toolgrantv1.Manifest) error {
	if _, err := toolgrantv1.NewAdminServiceClient(conn).ApplyManifest(ctx, &toolgrantv1.ApplyManifestRequest{Manifest: m}); err != nil {
		return fmt.Errorf("ApplyManifest: %w", err)
	}
	return nil
}

func callsUser(i int) string { return callsPrefix + "-" + strconv.Itoa(i) }

// authorizations are requests, no two of them about one call, also among several runs of this program.
type authorizations struct {
	run   string
	users []string
}

func newAuthorizations(users int) *authorizations {
	c := &authorizations{run: strconv.FormatInt(time.Now().UnixNano(), 36)}
	for i := range users {
		c.users = append(c.users, callsUser(i))
	}
	return c
}

// one is a worker's n-th request of a run. Each user has one chat, on his device.
func (c *authorizations) one(function string, worker, run, n int) *toolgrantv1.AuthorizeCallRequest {
	name := append(make([]byte, 0, 48), c.run...)
	for _, part := range []int{run, worker, n} {
		name = strconv.AppendInt(append(name, '-'), int64(part), 36)
	}
	user := c.users[(worker*7919+n)%len(c.users)]
	return &toolgrantv1.AuthorizeCallRequest{CallId: string(name) + function[len("bench_calls"):], ChatId: user, UserId: user,
		Surface: &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: user}}, Function: function}
}
