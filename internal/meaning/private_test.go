package meaning_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/erasure"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/meaning"
)

func (s *server) owns(user id.User) []id.Tool {
	var tools []id.Tool
	if v := s.Own(user); v != nil {
		for tool := range v.ByTool {
			tools = append(tools, tool)
		}
	}
	slices.Sort(tools)
	return tools
}

// named is a tool of a text that others may have, too.
func named(tool, text string) discovery.Tool {
	return discovery.Tool{ID: id.Tool(tool), Name: "same", Descriptions: []string{text}}
}

// Users' private tools are each its owner's, even of the same words: asked for, stored and held apart.
func TestPrivateToolsAreTheirOwners(t *testing.T) {
	w := build(t, many(10)...)
	w.own("ann", named("ann.1", "aab"), named("ann.2", "aab"))
	w.own("bob", named("bob.1", "aab"))
	s := w.serve(w.private)
	s.sync()
	w.wantAsked("the shared ones", 10)
	s.syncOwn("ann")
	w.wantAsked("Ann's", 2)
	if s.owns("bob") != nil || !slices.Equal(s.owns("ann"), []id.Tool{"ann.1", "ann.2"}) {
		t.Errorf("Ann has %v, Bob has %v", s.owns("ann"), s.owns("bob"))
	}
	s.syncOwn("bob")
	w.wantAsked("Bob's, of the same words", 1)
	s.syncOwn("cat")
	w.wantAsked("of somebody who has none", 0)
	if !slices.Equal(s.owns("bob"), []id.Tool{"bob.1"}) || s.owns("cat") != nil {
		t.Errorf("Bob has %v, Cat has %v", s.owns("bob"), s.owns("cat"))
	}
	for tool := range s.Vectors().ByTool {
		if tool[0] != 't' {
			t.Errorf("%s is among the shared ones", tool)
		}
	}
	for _, beside := range s.Own("bob").Beside {
		if len(s.Own("bob").Beside) != 10 || !slices.ContainsFunc(slices.Collect(values(s.Vectors().ByTool)), func(v []float32) bool { return &v[0] == &beside[0] }) {
			t.Fatal("what Bob's are compared with is not the shared ones")
		}
	}
	if n := w.count("private_vectors WHERE owner_user_id = 'ann'"); n != 2 || w.count("private_vectors") != 3 || w.count("shared_vectors") != 10 {
		t.Errorf("%d stored of Ann", n)
	}
	// Nobody reads others', whatever he asks for.
	stored, err := s.PrivateVectors("ann").Read(w.ctx, w.prints("private_vectors"))
	if err != nil || len(stored) != 2 || stored[0].Tool != "ann.1" || stored[1].Tool != "ann.2" {
		t.Errorf("%v, %v", stored, err)
	}
	if stats := s.Stats(); stats.Owners != 2 || stats.Private != 3 {
		t.Errorf("%+v", stats)
	}
}

func values(m map[id.Tool][]float32) func(func([]float32) bool) {
	return func(yield func([]float32) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// prints are all fingerprints of a table.
func (w *town) prints(table string) (prints []meaning.Fingerprint) {
	w.t.Helper()
	rows, err := w.conn.Query(w.ctx, "SELECT fingerprint FROM "+table)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var print []byte
		if err := rows.Scan(&print); err != nil {
			w.t.Fatal(err)
		}
		prints = append(prints, meaning.Fingerprint(print))
	}
	return prints
}

// Servers that a user's searches reach at once ask for his tools once.
func TestServersShareTheWorkForAUser(t *testing.T) {
	w := build(t)
	w.own("ann", many(100)...)
	var working sync.WaitGroup
	for range 3 {
		s := w.serve(w.private)
		working.Go(func() {
			eventually(t, "all vectors", func() bool { return s.SyncOwn(t.Context(), "ann") == nil && len(s.owns("ann")) == 100 })
		})
	}
	working.Wait()
	w.wantAsked("three servers", 100)
	if n := w.count("private_vectors"); n != 100 || w.count("vector_claims") != 0 {
		t.Errorf("%d stored, %d claims", n, w.count("vector_claims"))
	}
}

// Unless the operator wants it, nothing of private tools is sent, stored or held.
func TestPrivateToolsAreNotSentUnlessTheyMayBe(t *testing.T) {
	w := build(t, many(10)...)
	w.own("ann", tool("ann.x", "aab"))
	s := w.serve()
	s.sync()
	s.syncOwn("ann")
	s.understands("ann", "aa")
	w.wantAsked("the shared ones and the request", 11)
	if s.Own("ann") != nil || w.count("private_vectors") != 0 {
		t.Errorf("Ann has %v", s.owns("ann"))
	}
}

// A user's first search after a restart already has what is stored, without asking the model; after a change, the model
// is asked for what changed, in the background.
func TestOwnVectorsComeWithTheSearch(t *testing.T) {
	w := build(t, many(10)...)
	w.own("ann", tool("ann.x", "aab"), tool("ann.y", "b"))
	first := w.serve(w.private)
	first.sync()
	first.syncOwn("ann")
	w.model.asked()
	s := w.serve(w.private)
	s.sync()
	if s.Own("ann") != nil {
		t.Fatal("she did not search yet")
	}
	if !s.understands("ann", "aa") || !slices.Equal(s.owns("ann"), []id.Tool{"ann.x", "ann.y"}) {
		t.Errorf("she has %v", s.owns("ann"))
	}
	w.wantAsked("the request only", 1)
	before := s.Own("ann")
	if s.understands("ann", "aa"); s.Own("ann") != before {
		t.Error("nothing changed, and they are others")
	}
	w.change(w.tools...)
	if s.understands("ann", "aa"); s.Own("ann") != before {
		t.Error("nothing of hers changed, and they are others")
	}

	w.own("ann", tool("ann.x", "aabb"), tool("ann.y", "b"))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	defer cancel()
	s.understands("ann", "aa")
	eventually(t, "the changed tool's vector", func() bool { return slices.Equal(s.owns("ann"), []id.Tool{"ann.x", "ann.y"}) })
	w.wantAsked("the changed tool", 1)
	eventually(t, "its vector is stored", func() bool { return w.count("private_vectors") == 3 })

	w.own("ann") // none any more
	eventually(t, "hers are forgotten", func() bool { return s.Own("ann") == nil })
	if n := w.count("private_vectors"); n != 0 {
		t.Errorf("%d vectors are left of tools that are gone", n)
	}
}

// An endpoint that is down leaves private tools to their words, and is asked again when their owner searches again.
func TestOwnVectorsWithoutAModel(t *testing.T) {
	w := build(t, many(10)...)
	w.own("ann", tool("ann.x", "aab"))
	s := w.serve(w.private)
	s.sync()
	w.model.fails.Store(true)
	if err := s.SyncOwn(t.Context(), "ann"); err == nil || s.Own("ann") != nil || w.count("vector_claims") != 0 {
		t.Errorf("%v, %v", err, s.owns("ann"))
	}
	w.model.fails.Store(false)
	s.syncOwn("ann")
	if !slices.Equal(s.owns("ann"), []id.Tool{"ann.x"}) {
		t.Errorf("she has %v", s.owns("ann"))
	}
}

// Who is erased takes his vectors along, and nothing that was asked for before comes afterwards.
func TestAnErasedUsersVectorsGo(t *testing.T) {
	w := build(t)
	w.own("ann", tool("ann.x", "aab"))
	w.own("bob", tool("bob.x", "aab"))
	s := w.serve(w.private)
	s.syncOwn("bob")
	s.syncOwn("ann")
	w.own("ann", tool("ann.x", "aabb"))
	erased := func() {
		done, _, err := s.EraseUser(caller.With(w.ctx, caller.Caller{Actor: "test"}), erasure.Request{User: "ann"})
		if err != nil || !slices.Contains(done, erasure.Erased{Kind: "private_vectors", Count: 1}) {
			t.Errorf("%v, %v", done, err)
		}
	}
	w.model.before.Store(&erased) // while the model is asked about the changed tool
	s.syncOwn("ann")
	w.model.before.Store(nil)
	if n := w.count("private_vectors WHERE owner_user_id = 'ann'"); n != 0 || w.count("private_vectors") != 1 || w.count("vector_claims") != 0 {
		t.Errorf("%d are left of her, %d of all", n, w.count("private_vectors"))
	}
	// Who comes after her by the same name, with a tool of the same name, has none of hers.
	w.own("ann", tool("ann.x", "aab"))
	w.model.asked()
	w.serve(w.private).syncOwn("ann")
	w.wantAsked("another Ann's", 1)
}

// A tool that somebody else got is not found by what it was.
func TestAToolThatChangedHandsHasNoVectorOfBefore(t *testing.T) {
	w := build(t)
	w.own("ann", tool("x", "aab"))
	s := w.serve(w.private)
	s.syncOwn("ann")
	w.own("bob")
	w.exec("UPDATE tools SET owner_user_id = 'bob' WHERE tool_id = 'x'")
	for _, user := range []id.User{"ann", "bob"} {
		if stored, err := s.PrivateVectors(user).Read(w.ctx, w.prints("private_vectors")); err != nil || len(stored) > 0 {
			t.Errorf("%s has %v, %v", user, stored, err)
		}
	}
	if err := s.PrivateVectors("ann").Add(w.ctx, "c", "m", []meaning.Stored{{Fingerprint: meaning.Fingerprint{1}, Tool: "x", Vector: []float32{1}}}); err != nil || w.count("private_vectors") != 1 {
		t.Errorf("%v: a vector of a tool that is not hers was added", err)
	}
}

// All users' vectors together have a bound, whoever searches.
func TestOwnVectorsAreBounded(t *testing.T) {
	w := build(t, many(10)...)
	const users, each, most = 24, 10, 64 << 10 // 12 KB at least of each, 280 KB together
	w.model.dimensions.Store(300)
	s := w.serve(w.private, func(o *meaning.Options) { o.PrivateBytes = most })
	s.sync()
	for i := range users {
		user := id.User(fmt.Sprintf("u%02d", i))
		var tools []discovery.Tool
		for j := range each {
			tools = append(tools, tool(fmt.Sprintf("%s.%02d", user, j), "a"))
		}
		w.mu.Lock()
		w.tell, w.owned[user] = w.tell+1, tools // not in the database, which then stores none of them
		w.mu.Unlock()
		s.syncOwn(user)
	}
	eventually(t, "some are dropped", func() bool {
		stats := s.Stats()
		return stats.Owners > 0 && stats.Private*300*4 <= most
	})
}
