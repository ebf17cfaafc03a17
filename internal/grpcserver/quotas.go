package grpcserver

import (
	gostrings "strings"

	"google.golang.org/protobuf/types/known/durationpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

func quotasFromProto(list []*toolgrantv1.Quota) []quota.Rule {
	var rules []quota.Rule
	for _, q := range list {
		rule := quota.Rule{ID: id.Quota(q.GetQuotaId()), Limit: q.GetLimit(), Window: windowFromProto(q.GetWindow()),
			Scope:    quota.Scope(gostrings.TrimPrefix(q.GetScope().String(), "QUOTA_SCOPE_")),
			Unit:     quota.Unit(gostrings.TrimPrefix(q.GetUnit().String(), "QUOTA_UNIT_")),
			OnOutage: quota.OutageDeny, OnAbandoned: quota.AbandonedGiveBack, Shadow: q.GetShadow(), WarnAt: quota.DefaultWarnAt}
		if q.GetOnOutage() != toolgrantv1.OnOutage_ON_OUTAGE_UNSPECIFIED {
			rule.OnOutage = quota.OnOutage(gostrings.TrimPrefix(q.GetOnOutage().String(), "ON_OUTAGE_"))
		}
		if q.GetOnAbandoned() != toolgrantv1.OnAbandoned_ON_ABANDONED_UNSPECIFIED {
			rule.OnAbandoned = quota.OnAbandoned(gostrings.TrimPrefix(q.GetOnAbandoned().String(), "ON_ABANDONED_"))
		}
		if q.WarnAt != nil {
			rule.WarnAt = q.GetWarnAt()
		}
		if bucket := rule.Window.TokenBucket; bucket != nil && rule.Limit == 0 {
			rule.Limit = bucket.Burst
		}
		rules = append(rules, rule)
	}
	return rules
}

func windowFromProto(w *toolgrantv1.QuotaWindow) quota.Window {
	switch kind := w.GetKind().(type) {
	case *toolgrantv1.QuotaWindow_Fixed:
		return quota.Window{Fixed: kind.Fixed.AsDuration()}
	case *toolgrantv1.QuotaWindow_Calendar:
		return quota.Window{Calendar: &quota.Calendar{Zone: kind.Calendar.GetTimeZone(),
			Period: quota.Period(gostrings.TrimPrefix(kind.Calendar.GetPeriod().String(), "CALENDAR_PERIOD_"))}}
	case *toolgrantv1.QuotaWindow_TokenBucket:
		return quota.Window{TokenBucket: &quota.TokenBucket{RefillPerSecond: kind.TokenBucket.GetRefillPerSecond(), Burst: kind.TokenBucket.GetBurst()}}
	}
	return quota.Window{}
}

func quotasToProto(rules []quota.Rule) []*toolgrantv1.Quota {
	var list []*toolgrantv1.Quota
	for _, r := range rules {
		q := &toolgrantv1.Quota{QuotaId: string(r.ID), Limit: r.Limit, Window: windowToProto(r.Window),
			Scope:       scopeToProto[r.Scope],
			Unit:        unitToProto[r.Unit],
			OnOutage:    toolgrantv1.OnOutage(toolgrantv1.OnOutage_value["ON_OUTAGE_"+string(r.OnOutage)]),
			OnAbandoned: toolgrantv1.OnAbandoned(toolgrantv1.OnAbandoned_value["ON_ABANDONED_"+string(r.OnAbandoned)]),
			Shadow:      r.Shadow, WarnAt: &r.WarnAt}
		if r.Window.TokenBucket != nil {
			q.Limit = 0 // it is the burst
		}
		list = append(list, q)
	}
	return list
}

func windowToProto(w quota.Window) *toolgrantv1.QuotaWindow {
	switch {
	case w.Fixed != 0:
		return &toolgrantv1.QuotaWindow{Kind: &toolgrantv1.QuotaWindow_Fixed{Fixed: durationpb.New(w.Fixed)}}
	case w.Calendar != nil:
		return &toolgrantv1.QuotaWindow{Kind: &toolgrantv1.QuotaWindow_Calendar{Calendar: &toolgrantv1.CalendarWindow{TimeZone: w.Calendar.Zone,
			Period: toolgrantv1.CalendarPeriod(toolgrantv1.CalendarPeriod_value["CALENDAR_PERIOD_"+string(w.Calendar.Period)])}}}
	case w.TokenBucket != nil:
		return &toolgrantv1.QuotaWindow{Kind: &toolgrantv1.QuotaWindow_TokenBucket{TokenBucket: &toolgrantv1.TokenBucket{
			RefillPerSecond: w.TokenBucket.RefillPerSecond, Burst: w.TokenBucket.Burst}}}
	}
	return nil
}
