package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

var stateHeader = []any{"QUOTA", "SCOPE", "UNIT", "LIMIT", "USED", "HELD", "REMAINING", "RESETS", "NOTE"}

func stateRow(s *toolgrantv1.QuotaState, now time.Time) table.Row {
	var notes []string
	if s.GetShadow() {
		notes = append(notes, "never denies")
	}
	if s.GetNearLimit() {
		notes = append(notes, "near its limit")
	}
	if s.GetDecidedByOutage() {
		notes = append(notes, "counters are away")
	}
	return table.Row{s.GetQuotaId(), word(s.GetScope(), "QUOTA_SCOPE_"), word(s.GetUnit(), "QUOTA_UNIT_"), s.GetLimit(), s.GetUsed(),
		s.GetHeld(), s.GetRemaining(), resets(s.GetResetTime(), now), strings.Join(notes, ", ")}
}

// noQuotas is said in place of an empty table.
const noQuotas = "no quotas apply"

func printStates(w io.Writer, states ...*toolgrantv1.QuotaState) {
	if len(states) == 0 {
		fmt.Fprintln(w, noQuotas)
		return
	}
	t := newTable(w, stateHeader...)
	for _, state := range states {
		t.AppendRow(stateRow(state, time.Now()))
	}
	t.Render()
}

func resets(at *timestamppb.Timestamp, now time.Time) string {
	if at == nil {
		return ""
	}
	return "in " + wait(at.AsTime().Sub(now), now)
}

// wait words how long to wait, rounded up, and until when here: "3h 5m (17:04)".
func wait(length time.Duration, now time.Time) string {
	length = max(0, length).Truncate(time.Millisecond)
	if rest := length % time.Second; rest > 0 {
		length += time.Second - rest
	}
	const day = 24 * time.Hour
	parts := func(large, small time.Duration, largeName, smallName string) string {
		text := fmt.Sprintf("%d%s", length/large, largeName)
		if rest := length % large / small; rest > 0 {
			text += fmt.Sprintf(" %d%s", rest, smallName)
		}
		return text
	}
	switch end := now.Add(length).Local(); {
	case length < time.Minute:
		return fmt.Sprintf("%ds", length/time.Second)
	case length < time.Hour:
		return parts(time.Minute, time.Second, "m", "s")
	case length < day:
		return parts(time.Hour, time.Minute, "h", "m") + end.Format(" (15:04)")
	default:
		return parts(day, time.Hour, "d", "h") + end.Format(" (2006-01-02 15:04)")
	}
}

// denialsOf returns the quotas that denied a request, and how long to wait, unless waiting does not help.
func denialsOf(err error) (denials []*errdetails.QuotaFailure_Violation, retry *errdetails.RetryInfo) {
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.QuotaFailure:
			denials = append(denials, d.GetViolations()...)
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	return denials, retry
}

// explainDenial words a denial with a line for every quota that denied.
func explainDenial(headline string, denials []*errdetails.QuotaFailure_Violation, retry *errdetails.RetryInfo, now time.Time) string {
	text := headline
	for _, d := range denials {
		text += "\n  " + d.GetQuotaId() + ": " + d.GetDescription()
	}
	if retry == nil {
		return text + "\nwaiting does not help"
	}
	return text + "\ntry again in " + wait(retry.GetRetryDelay().AsDuration(), now)
}
