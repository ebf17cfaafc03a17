package redisstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
)

// healthRecord is a record in Redis, as JSON. Nodes of several releases read it: fields may be added, and none may get
// another meaning. Times are milliseconds since 1970.
type healthRecord struct {
	Failures int     `json:"f,omitempty"`
	Opened   int     `json:"o,omitempty"`
	Retry    int64   `json:"r,omitempty"`
	Probe    id.Call `json:"p,omitempty"`
	Lease    int64   `json:"e,omitempty"`
	Lack     float64 `json:"l,omitempty"`
	Latency  int64   `json:"d,omitempty"` // nanoseconds
	Reported int64   `json:"t,omitempty"`
	Mark     string  `json:"m"` // of the offer
}

func encodeHealth(r *health.Record, mark string) string {
	text, err := json.Marshal(healthRecord{Failures: r.Failures, Opened: r.Opened, Retry: millis(r.Retry), Probe: r.Probe, Lease: millis(r.Lease),
		Lack: r.Lack, Latency: int64(r.Latency), Reported: millis(r.Reported), Mark: mark})
	if err != nil {
		panic(err) // numbers and a string always marshal, but for NaN, which no rule makes
	}
	return string(text)
}

func decodeHealth(text string) (health.Record, error) {
	var r healthRecord
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return health.Record{}, err
	}
	return health.Record{Failures: r.Failures, Opened: r.Opened, Retry: instant(r.Retry), Probe: r.Probe, Lease: instant(r.Lease),
		Lack: min(max(r.Lack, 0), 1), Latency: time.Duration(r.Latency), Reported: instant(r.Reported)}, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

var errAnswer = errors.New("the script's answer is not what this server expects")

// readNews reads what the script returned for so many offers.
func readNews(answer []any, offers int) (n health.News, err error) {
	if len(answer) != 5 {
		return n, errAnswer
	}
	now, ok1 := answer[0].(int64)
	epoch, ok2 := answer[1].(string)
	version, ok3 := answer[2].(int64)
	taken, ok4 := answer[3].([]any)
	changed, ok5 := answer[4].([]any)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(taken) != offers || len(changed)%3 != 0 {
		return n, errAnswer
	}
	n = health.News{Now: time.UnixMicro(now).UTC(), Epoch: epoch, Version: health.Version(version)}
	for _, t := range taken {
		version, ok := t.(int64)
		if !ok {
			return n, errAnswer
		}
		n.Taken = append(n.Taken, health.Version(version))
	}
	for ; len(changed) > 0; changed = changed[3:] {
		name, ok1 := changed[0].(string)
		version, ok2 := changed[1].(int64)
		text, ok3 := changed[2].(string)
		subject, ok4 := parseField(name)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return n, errAnswer
		}
		s := health.Stored{Subject: subject, Version: health.Version(version)}
		if text != "" {
			if s.Record, err = decodeHealth(text); err != nil {
				return n, fmt.Errorf("%s: %w", name, err)
			}
		}
		n.Changed = append(n.Changed, s)
	}
	return n, nil
}
