package main

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestWaitsAreReadable(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	for length, want := range map[time.Duration]string{
		-time.Second:                           "0s",
		0:                                      "0s",
		time.Nanosecond:                        "0s",
		time.Millisecond:                       "1s",
		41*time.Second + 1*time.Millisecond:    "42s",
		time.Minute:                            "1m",
		59*time.Minute + 59*time.Second:        "59m 59s",
		3*time.Hour + 5*time.Minute:            "3h 5m (15:05)",
		13 * time.Hour:                         "13h (01:00)",
		12*24*time.Hour + 12*time.Hour:         "12d 12h (2026-02-13 00:00)",
		23*time.Hour + 59*time.Minute + 59_999: "23h 59m (11:59)",
	} {
		if got := wait(length, now); got != want {
			t.Errorf("%s: got %q, want %q", length, got, want)
		}
	}
}

func TestDenialsTellHowLongToWait(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	denied := func(details ...protoadapt.MessageV1) error {
		failure := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "user:ann", QuotaId: "web.day", Description: "10 of 10 calls are used"}}}
		st, err := status.New(codes.ResourceExhausted, "quotas deny it").WithDetails(append(details, failure)...)
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	err := denied(&errdetails.RetryInfo{RetryDelay: durationpb.New(90 * time.Second)})
	denials, retry := denialsOf(err)
	same(t, explainDenial("quotas deny it", denials, retry, now), `
quotas deny it
  web.day: 10 of 10 calls are used
try again in 1m 30s`)
	if exitStatus(err) != exitExhausted {
		t.Errorf("got status %d", exitStatus(err))
	}
	same(t, explainError(denied()), `
quotas deny it
  web.day: 10 of 10 calls are used
waiting does not help`)
	if other := status.Error(codes.ResourceExhausted, "too large"); exitStatus(other) != exitRefused {
		t.Errorf("another exhaustion: got status %d", exitStatus(other))
	}
}

func TestTimesAreReadAsPeopleGiveThem(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"72h":                       now.Add(72 * time.Hour),
		"2026-02-01":                time.Date(2026, 2, 1, 0, 0, 0, 0, time.Local),
		"2026-02-01T08:00:00+08:00": time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := parseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %s %v", text, got, err)
		}
	}
	if _, err := parseTime("tomorrow", now); err == nil {
		t.Error("tomorrow was taken")
	}
}
