package grpcserver

import (
	"context"
	"slices"
	gostrings "strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// kind is one kind of object that operators administer: how it stands in messages, in manifests and in the
// domain. M is its message, D its type in the domain.
type kind[M message, D any] struct {
	noun      string // a field of requests, and the type of the resource: "tool"
	section   admin.Section
	objects   func(*admin.Manifest) *[]D
	name      func(D) string // among its kind: its id
	fromProto func(M) D
	toProto   func(D) (M, error)        // without its etag
	etag      func(M) *string           // where its etag stands
	warnings  func(M) []fault.Violation // what is accepted, but probably not meant; nil: nothing ever
}

type message interface {
	proto.Message
	GetEtag() string
}

// backend is what the services of single objects share.
type backend struct {
	store     Store
	validator protovalidate.Validator
}

// written is what every write of an object tells besides the object.
type written struct {
	revision string
	warnings []*toolgrantv1.Warning
}

// withEtag returns an object's message, complete.
func (k *kind[M, D]) withEtag(object D) (M, error) {
	m, err := k.toProto(object)
	if err == nil {
		*k.etag(m) = admin.Etag(object)
	}
	return m, err
}

// manyFromProto converts a section of a manifest, and notes the etags that it expects.
func (k *kind[M, D]) manyFromProto(list []M, etags map[admin.Ref]string) []D {
	var objects []D
	for _, m := range list {
		object := k.fromProto(m)
		objects = append(objects, object)
		if m.GetEtag() != "" {
			etags[admin.Ref{Section: k.section, ID: k.name(object)}] = m.GetEtag()
		}
	}
	return objects
}

func (k *kind[M, D]) manyToProto(objects []D) ([]M, error) {
	var list []M
	for _, object := range objects {
		m, err := k.toProto(object)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func (k *kind[M, D]) find(stored *admin.Manifest, name string) (found D, exists bool) {
	for _, object := range *k.objects(stored) {
		if k.name(object) == name {
			return object, true
		}
	}
	return found, false
}

// manifest is the manifest of one object.
func (k *kind[M, D]) manifest(object D) (m admin.Manifest) {
	*k.objects(&m) = []D{object}
	return m
}

func (k *kind[M, D]) create(ctx context.Context, b *backend, m M) (M, written, error) {
	object := k.fromProto(m)
	return k.write(ctx, b, k.name(object), func(stored admin.Manifest) (admin.Edit, D, error) {
		if _, exists := k.find(&stored, k.name(object)); exists {
			return admin.Edit{}, object, fault.Exists(k.noun, k.name(object))
		}
		return admin.Edit{Manifest: k.manifest(object)}, object, nil
	})
}

// update lays the masked fields over the stored object. What comes out must keep the rules of the protos.
func (k *kind[M, D]) update(ctx context.Context, b *backend, m M, mask *fieldmaskpb.FieldMask, allowMissing bool) (M, written, error) {
	name := k.name(k.fromProto(m))
	if err := requireObject(m, k.noun, k.noun+"_id", name); err != nil {
		var none M
		return none, written{}, err
	}
	return k.write(ctx, b, name, func(stored admin.Manifest) (edit admin.Edit, object D, err error) {
		held, exists := k.find(&stored, name)
		if !exists && !allowMissing {
			return edit, object, fault.Missing(k.noun, name)
		}
		merged := proto.CloneOf(m)
		if exists {
			if merged, err = k.toProto(held); err != nil {
				return edit, object, err
			}
			if err := overlay(merged, m, mask); err != nil {
				return edit, object, err
			}
		}
		if err := b.check(merged, k.noun); err != nil {
			return edit, object, err
		}
		object = k.fromProto(merged)
		return admin.Edit{Manifest: k.manifest(object), Etags: map[admin.Ref]string{{Section: k.section, ID: name}: m.GetEtag()}}, object, nil
	})
}

func (k *kind[M, D]) delete(ctx context.Context, b *backend, name, etag string, allowMissing bool) (string, error) {
	ref := admin.Ref{Section: k.section, ID: name}
	_, w, err := k.write(ctx, b, name, func(stored admin.Manifest) (edit admin.Edit, object D, err error) {
		object, exists := k.find(&stored, name)
		switch {
		case exists:
			return admin.Edit{Delete: []admin.Ref{ref}, Etags: map[admin.Ref]string{ref: etag}}, object, nil
		case allowMissing:
			return edit, object, nil
		}
		return edit, object, fault.Missing(k.noun, name)
	})
	return w.revision, err
}

// write makes one edit, which decide tells together with the object after it.
func (k *kind[M, D]) write(ctx context.Context, b *backend, name string,
	decide func(admin.Manifest) (admin.Edit, D, error)) (m M, w written, err error) {
	var users []id.User
	if k.section == admin.SectionUsers {
		users = []id.User{id.User(name)}
	}
	var object D
	_, revision, err := b.edit(ctx, users, func(stored admin.Manifest) (edit admin.Edit, err error) {
		edit, object, err = decide(stored)
		return edit, err
	})
	if err != nil {
		return m, w, rename(err, string(k.section)+"[0]", k.noun)
	}
	stored := k.manifest(object)
	stored.Canonicalize()
	if m, err = k.withEtag((*k.objects(&stored))[0]); err != nil {
		return m, w, err
	}
	w.revision = revision.String()
	if k.warnings != nil {
		w.warnings = warningsToProto(k.noun+".", k.warnings(m))
	}
	return m, w, nil
}

func (k *kind[M, D]) get(ctx context.Context, b *backend, name string, c *toolgrantv1.Consistency) (m M, revision string, err error) {
	stored, r, err := b.store.Definitions(ctx)
	if err != nil {
		return m, "", err
	}
	if err := checkConsistency(c, r); err != nil {
		return m, "", err
	}
	object, exists := k.find(&stored, name)
	if !exists {
		return m, "", fault.Missing(k.noun, name)
	}
	m, err = k.withEtag(object)
	return m, r.String(), err
}

func (k *kind[M, D]) list(ctx context.Context, b *backend, p pageRequest) ([]M, page, error) {
	return k.pageOf(b, p, func(after string, atMost int32) ([]D, revision.Revision, error) {
		stored, r, err := b.store.Definitions(ctx)
		return following(*k.objects(&stored), k.name, after, atMost), r, err
	})
}

// pageOf makes a page of what read returns: the objects after one, at most so many, in the order of names.
func (k *kind[M, D]) pageOf(b *backend, p pageRequest, read func(after string, atMost int32) ([]D, revision.Revision, error)) (list []M, at page, err error) {
	after, size, err := openPage(string(k.section), p)
	if err != nil {
		return nil, at, err
	}
	objects, r, err := read(after, size+1) // one more, to know whether there are more
	if err != nil {
		return nil, at, err
	}
	if err := checkConsistency(p.GetConsistency(), r); err != nil {
		return nil, at, err
	}
	objects, at.next = closePage(objects, size, string(k.section), k.name)
	at.revision = r.String()
	for _, object := range objects {
		m, err := k.withEtag(object)
		if err != nil {
			return nil, at, err
		}
		list = append(list, m)
	}
	return list, at, nil
}

// requireObject refuses an update without an object, or with one that does not say which it is. Other rules
// of the protos hold for what the update makes of the stored object.
func requireObject(m proto.Message, field, idField, name string) error {
	switch {
	case !m.ProtoReflect().IsValid():
	case name == "":
		field += "." + idField
	default:
		return nil
	}
	return fault.Invalid(fault.Violation{Field: field, Description: "value is required"})
}

// check refuses a message that breaks the rules of the protos; path is where it stands in the request.
func (b *backend) check(m proto.Message, path string) error {
	violations, err := violationsOf(b.validator, m)
	if err != nil || len(violations) == 0 {
		return err
	}
	return rename(fault.Invalid(violations...), "", path+".")
}

// rename puts another beginning in the place of the one that a fault's paths have.
func rename(err error, from, to string) error {
	f, ok := fault.As(err)
	if !ok || len(f.Violations) == 0 {
		return err
	}
	renamed := *f
	renamed.Violations = slices.Clone(f.Violations)
	for i := range renamed.Violations {
		if rest, found := gostrings.CutPrefix(renamed.Violations[i].Field, from); found {
			renamed.Violations[i].Field = to + rest
		}
	}
	return &renamed
}
