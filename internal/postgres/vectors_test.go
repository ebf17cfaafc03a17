package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toolgrant/toolgrant/internal/meaning"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func printOf(n int) (f meaning.Fingerprint) {
	f[0], f[1] = byte(n), byte(n>>8)
	return f
}

// ownersWithTools are users who each have a private tool, named as they are.
func ownersWithTools(ctx context.Context, t *testing.T, conn *pgx.Conn, users ...string) {
	t.Helper()
	if _, err := conn.Exec(ctx, "INSERT INTO tool_types (tool_type_id, title, source, tool_class, disabled) VALUES ('plain', '', 'NATIVE', '', false)"); err != nil {
		t.Fatal(err)
	}
	for _, user := range users {
		if _, err := conn.Exec(ctx, "INSERT INTO users (user_id) VALUES ($1)", user); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, `INSERT INTO tools (tool_id, tool_type_id, name, title, description, prompt, category, config, status, core, precedence, risk,
			required_capabilities, owner_user_id, keywords, aliases, examples, localized) VALUES ($1, 'plain', 'n', '', '', '', '', '{}', 'ACTIVE', false, 0, 'LOW',
			'{}', $1, '{}', '{}', '{}', '{}')`, user); err != nil {
			t.Fatal(err)
		}
	}
}

// The database refuses what is no vector, whoever writes it.
func TestBadVectorsAreRefused(t *testing.T) {
	ctx := testkit.Context(t)
	_, conn := openWith(ctx, t)
	ownersWithTools(ctx, t, conn, "ann", "bob")
	const fine = `'\x` + "0000803f00000000'"
	insert := func(table, print, dimensions, vector, model string) error {
		owner, of := "", ""
		if table == "private_vectors" {
			owner, of = "owner_user_id, tool_id, ", "'ann', 'ann', "
		}
		_, err := conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%sfingerprint, dimensions, vector, model) VALUES (%s%s, %s, %s, %s)", table, owner, of, print, dimensions, vector, model))
		return err
	}
	for _, table := range []string{"shared_vectors", "private_vectors"} {
		for name, row := range map[string][4]string{
			"fingerprint": {`'\x00'`, "2", fine, "'m'"},
			"dimensions":  {"sha256('none')", "0", "''", "'m'"},
			"vector":      {"sha256('short')", "3", fine, "'m'"},
			"model":       {"sha256('model')", "2", fine, "'" + strings.Repeat("m", 257) + "'"},
		} {
			var refused *pgconn.PgError
			if err := insert(table, row[0], row[1], row[2], row[3]); !errors.As(err, &refused) || refused.Code != "23514" || refused.ConstraintName != table+"_"+name+"_ck" {
				t.Errorf("%s: %s: %v", table, name, err)
			}
		}
		if err := insert(table, "sha256('big')", "8193", "repeat('1234', 8193)::bytea", "'m'"); err == nil {
			t.Errorf("%s: 8,193 dimensions are taken", table)
		}
		if err := insert(table, "sha256('fine')", "2", fine, "'m'"); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
	for what, sql := range map[string]string{
		"of nobody":    "INSERT INTO private_vectors VALUES ('eve', 'ann', sha256('x'), 2, " + fine + ", 'm')",
		"of no tool":   "INSERT INTO private_vectors VALUES ('ann', 'x', sha256('x'), 2, " + fine + ", 'm')",
		"a bare claim": "INSERT INTO vector_claims VALUES ('', 'c', now())",
		"by nobody":    "INSERT INTO vector_claims VALUES (sha256('x'), '', now())",
	} {
		if _, err := conn.Exec(ctx, sql); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// What is stored comes back bit by bit, and is not written over.
func TestVectorsComeBackAsTheyWere(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	ownersWithTools(ctx, t, conn, "ann", "bob")
	vector := []float32{0.1, -1, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1)), float32(math.Inf(1))}
	for name, vault := range map[string]meaning.Vault{"shared": store.SharedVectors(), "private": store.PrivateVectors("ann")} {
		stored := meaning.Stored{Fingerprint: printOf(1), Vector: vector}
		if name == "private" {
			stored.Tool = "ann"
		}
		other := stored
		other.Vector = []float32{1, 2, 3, 4, 5, 6}
		for _, add := range [][]meaning.Stored{{stored, stored}, {other}, {}} {
			if err := vault.Add(ctx, "c", "m", add); err != nil {
				t.Fatal(err)
			}
		}
		got, err := vault.Read(ctx, []meaning.Fingerprint{printOf(0), printOf(1), printOf(1)})
		if err != nil || len(got) != 1 || got[0].Fingerprint != stored.Fingerprint || got[0].Tool != stored.Tool || !slices.EqualFunc(got[0].Vector, vector, func(a, b float32) bool {
			return math.Float32bits(a) == math.Float32bits(b)
		}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if got, err := vault.Read(ctx, nil); err != nil || len(got) != 0 {
			t.Errorf("%s: asked for nothing, and read %v, %v", name, got, err)
		}
		if others, err := store.PrivateVectors("bob").Read(ctx, []meaning.Fingerprint{printOf(1)}); err != nil || len(others) > 0 {
			t.Errorf("%s: Bob reads %v, %v", name, others, err)
		}
		if err := store.PrivateVectors("bob").Drop(ctx, got); err != nil {
			t.Error(err)
		}
		if left, _ := vault.Read(ctx, []meaning.Fingerprint{printOf(1)}); len(left) != 1 {
			t.Errorf("%s: Bob dropped it", name)
		}
		if err := vault.Drop(ctx, got); err != nil {
			t.Error(err)
		}
		if left, _ := vault.Read(ctx, []meaning.Fingerprint{printOf(1)}); len(got) > 0 && len(left) != 0 {
			t.Errorf("%s: dropped, and there", name)
		}
	}
}

// A claim is one claimant's until he gives it back, stores the vector, or it is over.
func TestClaimsOfVectors(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	claim := func(who string, lease time.Duration, numbers ...int) int {
		t.Helper()
		var wanted []meaning.Fingerprint
		for _, n := range numbers {
			wanted = append(wanted, printOf(n))
		}
		got, err := store.ClaimVectors(ctx, who, wanted, lease)
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	step := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	step("nothing", claim("a", time.Hour), 0)
	step("three", claim("a", time.Hour, 1, 2, 3), 3)
	step("the same again", claim("a", time.Hour, 1, 2, 3), 3)
	step("another's", claim("b", time.Hour, 2, 3, 4), 1)
	if err := store.ReleaseVectors(ctx, "b", []meaning.Fingerprint{printOf(1), printOf(4)}); err != nil {
		t.Fatal(err)
	}
	step("what was not the releaser's", claim("c", time.Hour, 1), 0)
	step("what was given back", claim("c", time.Hour, 4), 1)
	if err := store.SharedVectors().Add(ctx, "a", "m", []meaning.Stored{{Fingerprint: printOf(1), Vector: []float32{1}}, {Fingerprint: printOf(4), Vector: []float32{1}}}); err != nil {
		t.Fatal(err)
	}
	step("what was stored by who had it, and what by another", claim("d", time.Hour, 1, 4), 1)
	if _, err := conn.Exec(ctx, "UPDATE vector_claims SET expire_time = now() - interval '1 ms'"); err != nil {
		t.Fatal(err)
	}
	step("what is over", claim("e", time.Hour, 1, 2, 3, 4), 4)
}

// Claimants who want overlapping vectors in whatever order at the same time get each a part, and none an error.
func TestClaimantsDoNotStopOneAnother(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	all := make([]meaning.Fingerprint, 60)
	for i := range all {
		all[i] = printOf(i)
	}
	var claimants sync.WaitGroup
	var mu sync.Mutex
	made := map[meaning.Fingerprint]int{}
	for c := range 6 {
		claimants.Go(func() {
			random := rand.New(rand.NewPCG(uint64(c), 1))
			me := fmt.Sprint(c)
			for range 12 {
				wanted := slices.Clone(all)
				random.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
				mine, err := store.ClaimVectors(ctx, me, wanted[:30], time.Hour)
				if err != nil {
					t.Error(err)
				}
				there, err := store.SharedVectors().Read(ctx, mine)
				if err != nil {
					t.Error(err)
				}
				var add []meaning.Stored
				for _, one := range mine {
					if !slices.ContainsFunc(there, func(s meaning.Stored) bool { return s.Fingerprint == one }) {
						add = append(add, meaning.Stored{Fingerprint: one, Vector: []float32{float32(c)}})
					}
				}
				add = add[:len(add)*random.IntN(3)/2] // none, half or all
				mu.Lock()
				for _, one := range add {
					made[one.Fingerprint]++
				}
				mu.Unlock()
				if err := store.SharedVectors().Add(ctx, me, "m", add); err != nil {
					t.Error(err)
				}
				if err := store.SharedVectors().Need(ctx, mine); err != nil {
					t.Error(err)
				}
				if err := store.ReleaseVectors(ctx, me, mine); err != nil {
					t.Error(err)
				}
			}
		})
	}
	claimants.Wait()
	for one, times := range made {
		if times != 1 {
			t.Errorf("%d was made %d times", one[0], times)
		}
	}
	var stored, claims int
	if err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM shared_vectors), (SELECT count(*) FROM vector_claims)").Scan(&stored, &claims); err != nil || stored != len(made) || claims != 0 {
		t.Errorf("%d stored of %d, %d claims, %v", stored, len(made), claims, err)
	}
}

// What is needed stays; the rest goes, in batches, whoever prunes beside.
func TestVectorsNobodyNeedsGo(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	ownersWithTools(ctx, t, conn, "ann", "bob")
	var shared, hers, his []meaning.Stored
	for i := range 1200 { // more than a batch
		shared = append(shared, meaning.Stored{Fingerprint: printOf(i), Vector: []float32{1}})
		hers = append(hers, meaning.Stored{Fingerprint: printOf(i), Tool: "ann", Vector: []float32{1}})
	}
	his = []meaning.Stored{{Fingerprint: printOf(0), Tool: "bob", Vector: []float32{1}}}
	for vault, vectors := range map[meaning.Vault][]meaning.Stored{store.SharedVectors(): shared, store.PrivateVectors("ann"): hers, store.PrivateVectors("bob"): his} {
		if err := vault.Add(ctx, "c", "m", vectors); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"shared_vectors", "private_vectors"} {
		if _, err := conn.Exec(ctx, "UPDATE "+table+" SET need_time = now() - interval '40 days'"); err != nil {
			t.Fatal(err)
		}
	}
	needed := []meaning.Fingerprint{printOf(0), printOf(7)}
	for _, vault := range []meaning.Vault{store.SharedVectors(), store.PrivateVectors("ann")} {
		if err := vault.Need(ctx, needed); err != nil {
			t.Fatal(err)
		}
	}
	var pruning sync.WaitGroup
	for range 3 {
		pruning.Go(func() {
			if err := store.PruneVectors(ctx, time.Now().AddDate(0, 0, -30)); err != nil {
				t.Error(err)
			}
		})
	}
	pruning.Wait()
	if err := store.PruneVectors(ctx, time.Now().AddDate(0, 0, -30)); err != nil {
		t.Error(err)
	}
	var left, ann, bob int
	if err := conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM shared_vectors), count(*) FILTER (WHERE owner_user_id = 'ann'), count(*) FILTER (WHERE owner_user_id = 'bob')
		FROM private_vectors`).Scan(&left, &ann, &bob); err != nil || left != 2 || ann != 2 || bob != 0 {
		t.Errorf("%d shared, %d of Ann, %d of Bob, %v", left, ann, bob, err)
	}
	// It is written once a day only.
	var before, after time.Time
	at := "SELECT min(need_time) FROM shared_vectors"
	if err := conn.QueryRow(ctx, at).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := store.SharedVectors().Need(ctx, needed); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(ctx, at).Scan(&after); err != nil || !after.Equal(before) {
		t.Errorf("noted at %v and again at %v, %v", before, after, err)
	}
}
