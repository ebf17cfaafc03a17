package grpcserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	gostrings "strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/id"
)

type auditServer struct {
	toolgrantv1.UnimplementedAuditServiceServer
	store Store
}

const auditActionPrefix = "AUDIT_ACTION_"

// ListAuditEntries implements the RPC.
func (s *auditServer) ListAuditEntries(ctx context.Context, r *toolgrantv1.ListAuditEntriesRequest) (*toolgrantv1.ListAuditEntriesResponse, error) {
	filter := audit.Filter{Kind: r.GetKind(), ObjectID: r.GetObjectId(), Actor: r.GetActor(), User: id.User(r.GetUserId()),
		Start: timeFromProto(r.GetStartTime()), End: timeFromProto(r.GetEndTime())}
	if r.GetAction() != toolgrantv1.AuditAction_AUDIT_ACTION_UNSPECIFIED {
		filter.Action = audit.Action(gostrings.TrimPrefix(r.GetAction().String(), auditActionPrefix))
	}
	list, err := auditList(filter)
	if err != nil {
		return nil, err
	}
	token, size, err := openPage(list, r)
	if err != nil {
		return nil, err
	}
	after, err := parseAuditKey(token)
	if err != nil {
		return nil, err
	}
	entries, more, at, err := s.store.AuditEntries(ctx, filter, after, size)
	if err != nil {
		return nil, err
	}
	if err := checkConsistency(r.GetConsistency(), at); err != nil {
		return nil, err
	}
	response := &toolgrantv1.ListAuditEntriesResponse{Revision: at.String()}
	for i := range entries {
		entry, err := auditEntryToProto(&entries[i])
		if err != nil {
			return nil, err
		}
		response.Entries = append(response.Entries, entry)
	}
	if more {
		response.NextPageToken = pageToken(list, auditKeyText(entries[len(entries)-1].Key))
	}
	return response, nil
}

// auditList names the list that a filter makes, so that a page's token is taken with the same filter only.
func auditList(f audit.Filter) (string, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "audit/" + base64.RawURLEncoding.EncodeToString(sum[:12]), nil
}

// auditKeyText is a key as page tokens hold it: the time in microseconds, as the database keeps it, and the number.
func auditKeyText(k audit.Key) string { return fmt.Sprintf("%d/%d", k.Time.UnixMicro(), k.Sequence) }

func parseAuditKey(text string) (k audit.Key, err error) {
	if text == "" {
		return k, nil
	}
	var micros int64
	if _, err := fmt.Sscanf(text, "%d/%d", &micros, &k.Sequence); err != nil {
		return k, errPageToken
	}
	k.Time = time.UnixMicro(micros).UTC()
	if auditKeyText(k) != text || k.Time.Year() < 1970 || k.Time.Year() > 9999 {
		return k, errPageToken
	}
	return k, nil
}

func auditEntryToProto(e *audit.Entry) (*toolgrantv1.AuditEntry, error) {
	before, err := auditStateToProto(e.Before)
	if err != nil {
		return nil, err
	}
	after, err := auditStateToProto(e.After)
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.AuditEntry{SequenceNumber: e.Sequence, CreateTime: timestamppb.New(e.Time), Actor: e.Actor,
		Action: toolgrantv1.AuditAction(toolgrantv1.AuditAction_value[auditActionPrefix+string(e.Action)]),
		Kind:   e.Kind, ObjectId: e.ObjectID, UserId: string(e.User), ChangedFields: e.ChangedFields, Before: before, After: after,
		Reason: e.Reason, RequestId: e.RequestID}, nil
}

func auditStateToProto(s *audit.State) (*toolgrantv1.AuditState, error) {
	if s == nil {
		return nil, nil
	}
	data, err := json.Marshal(s.Fields)
	if err != nil {
		return nil, err
	}
	fields, err := structFromJSON(data)
	if err != nil {
		return nil, err
	}
	state := &toolgrantv1.AuditState{Fields: fields}
	for _, o := range s.Omitted {
		state.Omitted = append(state.Omitted, &toolgrantv1.AuditOmittedField{Field: o.Field, Size: int32(o.Size),
			Sha256: o.SHA256, Items: o.Items, ItemCount: int32(o.ItemCount)})
	}
	return state, nil
}
