package grpcserver

import (
	"context"
	gostrings "strings"
	"time"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// Usage is the storage of what was used.
type Usage interface {
	// History returns what was used after a day, user and tool, to a last day, at most so many; of all users without a
	// user, of all tools without a tool.
	History(ctx context.Context, user id.User, tool id.Tool, after quota.Usage, last time.Time, atMost int32) ([]quota.Usage, error)
}

// ListQuotaHistory implements the RPC.
func (s *quotaServer) ListQuotaHistory(ctx context.Context, r *toolgrantv1.ListQuotaHistoryRequest) (*toolgrantv1.ListQuotaHistoryResponse, error) {
	first, last, err := daysOf(r)
	if err != nil {
		return nil, err
	}
	list := gostrings.Join([]string{"quota-history", r.GetUserId(), r.GetToolId(), r.GetFirstDay(), r.GetLastDay()}, " ")
	token, size, err := openPage(list, r)
	if err != nil {
		return nil, err
	}
	after := quota.Usage{Day: first}
	if token != "" {
		if after, err = usageNamed(token); err != nil {
			return nil, err
		}
	}
	usage, err := s.usage.History(ctx, id.User(r.GetUserId()), id.Tool(r.GetToolId()), after, last, size+1) // one more, to know whether there are more
	if err != nil {
		return nil, err
	}
	usage, next := closePage(usage, size, list, usageName)
	response := &toolgrantv1.ListQuotaHistoryResponse{NextPageToken: next}
	for _, u := range usage {
		response.Usage = append(response.Usage, &toolgrantv1.QuotaUsage{Day: u.Day.Format(time.DateOnly),
			UserId: string(u.User), ToolId: string(u.Tool), Calls: u.Calls, Tokens: u.Tokens})
	}
	return response, nil
}

// daysOf returns the first and the last day that are asked for.
func daysOf(r *toolgrantv1.ListQuotaHistoryRequest) (first, last time.Time, err error) {
	var violations []fault.Violation
	day := func(field, text, otherwise string) time.Time {
		if text == "" {
			text = otherwise
		}
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			violations = append(violations, fault.Violation{Field: field, Description: `must be a day, such as "2026-01-31"`})
		}
		return at
	}
	first, last = day("first_day", r.GetFirstDay(), "0001-01-01"), day("last_day", r.GetLastDay(), "9999-12-31")
	if len(violations) > 0 {
		return first, last, fault.Invalid(violations...)
	}
	return first, last, nil
}

// usageName is a key of the history in a page token. Identifiers have no blanks.
func usageName(u quota.Usage) string {
	return gostrings.Join([]string{u.Day.Format(time.DateOnly), string(u.User), string(u.Tool)}, " ")
}

func usageNamed(name string) (quota.Usage, error) {
	day, ids, _ := gostrings.Cut(name, " ")
	user, tool, _ := gostrings.Cut(ids, " ")
	at, err := time.Parse(time.DateOnly, day)
	if err != nil || !id.Valid(user) || !id.Valid(tool) {
		return quota.Usage{}, errPageToken
	}
	return quota.Usage{Day: at, User: id.User(user), Tool: id.Tool(tool)}, nil
}
