package grpcserver

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// userPart is a kind of object that is a part of its user: devices and memberships. Changing one changes
// the user.
type userPart[M proto.Message, D any] struct {
	noun      string // a field of requests, and the type of the resource: "device"
	field     string // of User: "devices"
	idField   string // of M: "device_id"
	parts     func(*availability.User) *[]D
	name      func(D) string // among the user's: its id
	fromProto func(M) D
	toProto   func(D) M
}

func (k *userPart[M, D]) index(parts []D, name string) int {
	return slices.IndexFunc(parts, func(part D) bool { return k.name(part) == name })
}

// change makes one edit of a user's parts, which decide tells together with the place of the part at hand.
func (k *userPart[M, D]) change(ctx context.Context, b *backend, user string, decide func([]D) ([]D, int, error)) (string, error) {
	place := 0
	_, r, err := b.edit(ctx, []id.User{id.User(user)}, func(stored admin.Manifest) (edit admin.Edit, err error) {
		u, exists := users.find(&stored, user)
		if !exists {
			return edit, fault.Missing("user", user)
		}
		parts := k.parts(&u)
		if *parts, place, err = decide(slices.Clone(*parts)); err != nil {
			return edit, err
		}
		edit.Users = []availability.User{u}
		return edit, nil
	})
	return r.String(), rename(err, fmt.Sprintf("users[0].%s[%d]", k.field, place), k.noun)
}

func (k *userPart[M, D]) create(ctx context.Context, b *backend, user string, m M) (M, string, error) {
	part := k.fromProto(m)
	r, err := k.change(ctx, b, user, func(parts []D) ([]D, int, error) {
		if k.index(parts, k.name(part)) >= 0 {
			return nil, 0, fault.Exists(k.noun, k.name(part))
		}
		return append(parts, part), len(parts), nil
	})
	return k.toProto(part), r, err
}

func (k *userPart[M, D]) update(ctx context.Context, b *backend, user string, m M, mask *fieldmaskpb.FieldMask, allowMissing bool) (M, string, error) {
	part := k.fromProto(m)
	name := k.name(part)
	if err := requireObject(m, k.noun, k.idField, name); err != nil {
		return m, "", err
	}
	r, err := k.change(ctx, b, user, func(parts []D) ([]D, int, error) {
		merged, place := proto.CloneOf(m), k.index(parts, name)
		switch {
		case place >= 0:
			merged = k.toProto(parts[place])
			if err := overlay(merged, m, mask); err != nil {
				return nil, 0, err
			}
		case allowMissing:
			place, parts = len(parts), append(parts, part)
		default:
			return nil, 0, fault.Missing(k.noun, name)
		}
		if err := b.check(merged, k.noun); err != nil {
			return nil, 0, err
		}
		part = k.fromProto(merged)
		parts[place] = part
		return parts, place, nil
	})
	return k.toProto(part), r, err
}

func (k *userPart[M, D]) delete(ctx context.Context, b *backend, user, name string, allowMissing bool) (string, error) {
	return k.change(ctx, b, user, func(parts []D) ([]D, int, error) {
		place := k.index(parts, name)
		switch {
		case place >= 0:
			return slices.Delete(parts, place, place+1), place, nil
		case allowMissing:
			return parts, 0, nil
		}
		return nil, 0, fault.Missing(k.noun, name)
	})
}

// of reads a user's parts, in the order of their names.
func (k *userPart[M, D]) of(ctx context.Context, b *backend, user string, c *toolgrantv1.Consistency) ([]D, string, error) {
	u, r, err := b.store.User(ctx, id.User(user))
	if err != nil {
		return nil, "", err
	}
	if err := checkConsistency(c, r); err != nil {
		return nil, "", err
	}
	if u == nil {
		return nil, "", fault.Missing("user", user)
	}
	return *k.parts(u), r.String(), nil
}

func (k *userPart[M, D]) get(ctx context.Context, b *backend, user, name string, c *toolgrantv1.Consistency) (m M, r string, err error) {
	parts, r, err := k.of(ctx, b, user, c)
	if err != nil {
		return m, "", err
	}
	place := k.index(parts, name)
	if place < 0 {
		return m, "", fault.Missing(k.noun, name)
	}
	return k.toProto(parts[place]), r, nil
}

func (k *userPart[M, D]) list(ctx context.Context, b *backend, user string, p pageRequest) (list []M, at page, err error) {
	after, size, err := openPage(k.field+"/"+user, p)
	if err != nil {
		return nil, at, err
	}
	parts, r, err := k.of(ctx, b, user, p.GetConsistency())
	if err != nil {
		return nil, at, err
	}
	parts, at.next = closePage(following(parts, k.name, after, size+1), size, k.field+"/"+user, k.name)
	at.revision = r
	for _, part := range parts {
		list = append(list, k.toProto(part))
	}
	return list, at, nil
}
