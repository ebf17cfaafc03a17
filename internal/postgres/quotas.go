package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// quotasByOwner groups rules, which are sorted by id, by the tool or type that has them.
func quotasByOwner(rows []db.Quota, owner func(db.Quota) *string) map[string][]quota.Rule {
	rules := make(map[string][]quota.Rule)
	for _, row := range rows {
		name := orEmpty(owner(row))
		rules[name] = append(rules[name], quotaFromRow(row))
	}
	return rules
}

func quotaFromRow(q db.Quota) quota.Rule {
	rule := quota.Rule{ID: id.Quota(q.QuotaID), Scope: quota.Scope(q.Scope), Unit: quota.Unit(q.Unit), Limit: q.QuotaLimit,
		OnOutage: quota.OnOutage(q.OnOutage), OnAbandoned: quota.OnAbandoned(q.OnAbandoned), Shadow: q.Shadow, WarnAt: q.WarnAt}
	switch {
	case q.FixedMs != nil:
		rule.Window.Fixed = time.Duration(*q.FixedMs) * time.Millisecond
	case q.CalendarPeriod != nil:
		rule.Window.Calendar = &quota.Calendar{Period: quota.Period(*q.CalendarPeriod), Zone: orEmpty(q.CalendarZone)}
	case q.RefillPerSecond != nil:
		rule.Window.TokenBucket = &quota.TokenBucket{RefillPerSecond: *q.RefillPerSecond, Burst: q.QuotaLimit}
	}
	return rule
}

// putQuotas writes the rules of a tool or of a type; the other is empty.
func (s *Store) putQuotas(ctx context.Context, tx pgx.Tx, tool id.Tool, toolType id.ToolType, rules []quota.Rule) error {
	for _, r := range rules {
		row := db.PutQuotaParams{QuotaID: string(r.ID), ToolID: orNull(tool), ToolTypeID: orNull(toolType), Scope: string(r.Scope),
			Unit: string(r.Unit), QuotaLimit: r.Limit, OnOutage: string(r.OnOutage), OnAbandoned: string(r.OnAbandoned),
			Shadow: r.Shadow, WarnAt: r.WarnAt}
		switch w := r.Window; {
		case w.Fixed != 0:
			ms := w.Fixed.Milliseconds()
			row.FixedMs = &ms
		case w.Calendar != nil:
			row.CalendarPeriod, row.CalendarZone = orNull(w.Calendar.Period), &w.Calendar.Zone
		case w.TokenBucket != nil:
			row.RefillPerSecond = &w.TokenBucket.RefillPerSecond
		}
		if err := s.queries.PutQuota(ctx, tx, row); err != nil {
			return err
		}
	}
	return nil
}

// dropQuotas deletes the rules that updated tools and types have no more. It comes after all rules were written: one
// that went to another tool is that tool's by then, and keeps its overrides.
func (s *Store) dropQuotas(ctx context.Context, tx pgx.Tx, changes []admin.Change) error {
	drop := db.DropQuotasParams{ToolIds: []string{}, ToolTypeIds: []string{}, Kept: []string{}}
	keep := func(rules []quota.Rule) {
		for _, r := range rules {
			drop.Kept = append(drop.Kept, string(r.ID))
		}
	}
	for _, c := range changes {
		if c.Action != admin.ActionUpdate {
			continue
		}
		switch o := c.Object.(type) {
		case catalog.Tool:
			drop.ToolIds = append(drop.ToolIds, string(o.ID))
			keep(o.Quotas)
		case catalog.ToolType:
			drop.ToolTypeIds = append(drop.ToolTypeIds, string(o.ID))
			keep(o.Quotas)
		}
	}
	if len(drop.ToolIds)+len(drop.ToolTypeIds) == 0 {
		return nil
	}
	return s.queries.DropQuotas(ctx, tx, drop)
}
