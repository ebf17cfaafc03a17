package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// TestIdentifiersAreTheSameInTheDatabase checks that the database takes for an identifier what the server does.
func TestIdentifiersAreTheSameInTheDatabase(t *testing.T) {
	_, conn := openWith(t.Context(), t)
	texts := []string{"", "ann", strings.Repeat("a", id.MaxBytes), strings.Repeat("a", id.MaxBytes+1), strings.Repeat("é", 64), "ann\n", "\nann", "ann\nbob"}
	for c := rune(1); c < 0x180; c++ {
		texts = append(texts, string(c), "a"+string(c)+"b")
	}
	rows, err := conn.Query(t.Context(), "SELECT text FROM unnest($1::text[]) AS text WHERE is_identifier(text)", texts)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	accepted := make(map[string]bool)
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		accepted[text] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if wrong := slices.DeleteFunc(texts, func(text string) bool { return accepted[text] == id.Valid(text) }); len(wrong) > 0 {
		t.Errorf("of %q the database and the server disagree", wrong)
	}
}
