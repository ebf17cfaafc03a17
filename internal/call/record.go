package call

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// Held is where the quotas of a call are held.
type Held string

// The places.
const (
	HeldNowhere Held = ""  // it has none
	HeldByNode  Held = "N" // the node that allowed the call: all its rules are of scope NODE
	HeldByAll   Held = "A" // where all nodes find them
)

// Record is what is remembered of a call that was allowed, until it is reported.
type Record struct {
	Call     id.Call
	Content  string // a fingerprint of what was asked
	User     id.User
	Chat     id.Chat
	Tool     id.Tool
	Function string
	Tokens   int64 // estimated
	Held     Held
	Lease    time.Duration
	// Turn is the chat's, and Mode the user's, when the call was allowed.
	Turn int32
	Mode routing.Mode
}

// Keep is how long it is remembered that the call was allowed.
func (r *Record) Keep() time.Duration { return r.Lease + Late }

// Written is a record as Encode writes it.
type Written struct {
	Call id.Call
	Text string
	Keep time.Duration
}

// Write writes a record down.
func (r *Record) Write() Written { return Written{r.Call, r.Encode(), r.Keep()} }

// contentOf returns the content of a call of what Encode wrote: its first line.
func contentOf(text string) string {
	content, _, _ := strings.Cut(text, "\n")
	return content
}

// recordWords is how many lines a record has, and fewRecordWords how many it had before it told turn and mode.
const recordWords, fewRecordWords = 10, 8

// Encode writes a record down but for its call. No part has a line break in it.
func (r *Record) Encode() string {
	return strings.Join([]string{r.Content, string(r.User), string(r.Chat), string(r.Tool), r.Function,
		strconv.FormatInt(r.Tokens, 10), string(r.Held), r.Lease.String(),
		strconv.FormatInt(int64(r.Turn), 10), string(r.Mode)}, "\n")
}

// DecodeRecord reads what Encode wrote.
func DecodeRecord(call id.Call, text string) (*Record, error) {
	words := strings.Split(text, "\n")
	if len(words) == fewRecordWords {
		words = append(words, "0", "")
	}
	if len(words) != recordWords {
		return nil, fmt.Errorf("call %s: its record has %d lines", call, len(words))
	}
	tokens, err := strconv.ParseInt(words[5], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("call %s: its record: %w", call, err)
	}
	lease, err := time.ParseDuration(words[7])
	if err != nil {
		return nil, fmt.Errorf("call %s: its record: %w", call, err)
	}
	turn, err := strconv.ParseInt(words[8], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("call %s: its record: %w", call, err)
	}
	return &Record{Call: call, Content: words[0], User: id.User(words[1]), Chat: id.Chat(words[2]), Tool: id.Tool(words[3]), Function: words[4],
		Tokens: tokens, Held: Held(words[6]), Lease: lease, Turn: int32(turn), Mode: routing.Mode(words[9])}, nil
}
