package quota_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// rule returns a valid rule, changed.
func rule(change func(*quota.Rule)) quota.Rule {
	r := quota.Rule{ID: "q", Scope: quota.ScopeUser, Unit: quota.UnitCalls, Limit: 10, Window: quota.Window{Fixed: time.Minute},
		OnOutage: quota.OutageDeny, OnAbandoned: quota.AbandonedGiveBack, WarnAt: quota.DefaultWarnAt}
	change(&r)
	return r
}

func calendar(zone string) quota.Window {
	return quota.Window{Calendar: &quota.Calendar{Period: quota.PeriodDay, Zone: zone}}
}

func bucket(refill float64, burst int64) quota.Window {
	return quota.Window{TokenBucket: &quota.TokenBucket{RefillPerSecond: refill, Burst: burst}}
}

func TestRulesAreValidated(t *testing.T) {
	const refill = "window.token_bucket.refill_per_second"
	for name, c := range map[string]struct {
		change func(*quota.Rule)
		fields string // at fault
	}{
		"valid":                      {func(*quota.Rule) {}, ""},
		"a limit of 0":               {func(r *quota.Rule) { r.Limit = 0 }, ""},
		"tokens in a bucket":         {func(r *quota.Rule) { r.Unit, r.Window = quota.UnitTokens, bucket(2, 10) }, ""},
		"calls at a time":            {func(r *quota.Rule) { r.Unit, r.Window = quota.UnitConcurrentCalls, quota.Window{} }, ""},
		"no zone":                    {func(r *quota.Rule) { r.Window = calendar("") }, ""},
		"a zone":                     {func(r *quota.Rule) { r.Window = calendar("America/Argentina/Buenos_Aires") }, ""},
		"a zone by an offset":        {func(r *quota.Rule) { r.Window = calendar("Etc/GMT-14") }, ""},
		"a fraction of a second":     {func(r *quota.Rule) { r.Window.Fixed = 1001 * time.Millisecond }, ""},
		"nothing":                    {func(r *quota.Rule) { *r = quota.Rule{} }, "quota_id scope on_outage on_abandoned warn_at unit"},
		"a bad id":                   {func(r *quota.Rule) { r.ID = "a b" }, "quota_id"},
		"an unknown scope":           {func(r *quota.Rule) { r.Scope = "UNSPECIFIED" }, "scope"},
		"a negative limit":           {func(r *quota.Rule) { r.Limit = -1 }, "limit"},
		"a limit without end":        {func(r *quota.Rule) { r.Limit = math.MaxInt64 }, "limit"},
		"no window":                  {func(r *quota.Rule) { r.Window = quota.Window{} }, "window"},
		"two windows":                {func(r *quota.Rule) { r.Window.Calendar = calendar("").Calendar }, "window"},
		"a short window":             {func(r *quota.Rule) { r.Window.Fixed = 999 * time.Millisecond }, "window.fixed"},
		"a negative window":          {func(r *quota.Rule) { r.Window.Fixed = -time.Hour }, "window.fixed"},
		"a long window":              {func(r *quota.Rule) { r.Window.Fixed = quota.MaxFixed + 1 }, "window.fixed"},
		"a fraction of a ms":         {func(r *quota.Rule) { r.Window.Fixed = time.Second + 1 }, "window.fixed"},
		"an unknown period":          {func(r *quota.Rule) { r.Window.Calendar, r.Window.Fixed = &quota.Calendar{Period: "YEAR"}, 0 }, "window.calendar.period"},
		"an unknown zone":            {func(r *quota.Rule) { r.Window = calendar("Asia/Peking") }, "window.calendar.time_zone"},
		"the machine's zone":         {func(r *quota.Rule) { r.Window = calendar("Local") }, "window.calendar.time_zone"},
		"a file":                     {func(r *quota.Rule) { r.Window = calendar("../zoneinfo/UTC") }, "window.calendar.time_zone"},
		"a file beside the zones":    {func(r *quota.Rule) { r.Window = calendar("right/UTC") }, "window.calendar.time_zone"},
		"the file of the machine":    {func(r *quota.Rule) { r.Window = calendar("localtime") }, "window.calendar.time_zone"},
		"a zone with a zero":         {func(r *quota.Rule) { r.Window = calendar("UTC\x00") }, "window.calendar.time_zone"},
		"an endless name":            {func(r *quota.Rule) { r.Window = calendar("A" + strings.Repeat("/A", 1000)) }, "window.calendar.time_zone"},
		"a limit beside a burst":     {func(r *quota.Rule) { r.Window = bucket(2, 11) }, "limit"},
		"no burst":                   {func(r *quota.Rule) { r.Limit, r.Window = 0, bucket(2, 0) }, "window.token_bucket.burst"},
		"no refill":                  {func(r *quota.Rule) { r.Window = bucket(0, 10) }, refill},
		"a refill that is no number": {func(r *quota.Rule) { r.Window = bucket(math.NaN(), 10) }, refill},
		"an endless refill":          {func(r *quota.Rule) { r.Window = bucket(math.Inf(1), 10) }, refill},
		"a refill of years":          {func(r *quota.Rule) { r.Window = bucket(1e-7, 10) }, refill},
		"calls at a time, window":    {func(r *quota.Rule) { r.Unit = quota.UnitConcurrentCalls }, "window"},
		"calls at a time, charged": {func(r *quota.Rule) {
			r.Unit, r.Window, r.OnAbandoned = quota.UnitConcurrentCalls, quota.Window{}, quota.AbandonedCharge
		}, "on_abandoned"},
		"no share":                  {func(r *quota.Rule) { r.WarnAt = 0 }, "warn_at"},
		"too much of a share":       {func(r *quota.Rule) { r.WarnAt = 1.01 }, "warn_at"},
		"a share that is no number": {func(r *quota.Rule) { r.WarnAt = math.NaN() }, "warn_at"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rule(c.change)
			var fields []string
			for _, v := range r.Validate() {
				fields = append(fields, v.Field)
			}
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("got %q, want %q: %v", got, c.fields, r.Validate())
			}
		})
	}
}

func TestACallTouchesTheRulesOfItsToolAndItsType(t *testing.T) {
	named := func(names ...string) (rules []quota.Rule) {
		for _, name := range names {
			rules = append(rules, quota.Rule{ID: id.Quota(name)})
		}
		return rules
	}
	own, ofType := named("b", "d"), named("a", "c")
	var all []quota.Rule
	for _, r := range quota.RulesFor(own, ofType) {
		all = append(all, r.Rule)
	}
	if got, want := fmt.Sprint(all), fmt.Sprint(named("a", "b", "c", "d")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if fmt.Sprint(own, ofType) != fmt.Sprint(named("b", "d"), named("a", "c")) {
		t.Error("the lists were changed")
	}
}

func TestCostsGoByUnit(t *testing.T) {
	c := quota.Cost{Calls: 2, Tokens: 300}
	if c.In(quota.UnitCalls) != 2 || c.In(quota.UnitTokens) != 300 || c.In(quota.UnitConcurrentCalls) != 2 {
		t.Errorf("got %d calls, %d tokens, %d at a time", c.In(quota.UnitCalls), c.In(quota.UnitTokens), c.In(quota.UnitConcurrentCalls))
	}
}

func TestALimitIsNearFromItsShareOn(t *testing.T) {
	for _, c := range []struct {
		warnAt            float64
		limit, used, held int64
		near              bool
	}{
		{0.8, 10, 7, 0, false}, {0.8, 10, 7, 1, true}, {0.8, 10, 12, 0, true}, {1, 3, 2, 0, false}, {1, 3, 3, 0, true},
		{0.07, 100, 7, 0, true}, {0.07, 100, 6, 0, false}, {0.8, 0, 0, 0, true},
	} {
		r := quota.Rule{WarnAt: c.warnAt}
		if got := r.Near(quota.State{Limit: c.limit, Used: c.used, Held: c.held}); got != c.near {
			t.Errorf("%v: got %t", c, got)
		}
	}
}

func TestRulesAsJSON(t *testing.T) {
	for want, r := range map[string]quota.Rule{
		`"window":{"fixed":"60s"}`:   rule(func(*quota.Rule) {}),
		`"window":{"fixed":"1.25s"}`: rule(func(r *quota.Rule) { r.Window.Fixed = 1250 * time.Millisecond }),
		`"window":{"calendar":{"period":"DAY","time_zone":"Asia/Shanghai"}}`: rule(func(r *quota.Rule) { r.Window = calendar("Asia/Shanghai") }),
		`"limit":10,"on_outage"`: rule(func(r *quota.Rule) { r.Unit, r.Window = quota.UnitConcurrentCalls, quota.Window{} }),
	} {
		data, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("got %s, %v; want %s in it", data, err, want)
		}
	}
}
