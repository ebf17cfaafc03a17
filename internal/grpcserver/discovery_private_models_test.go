package grpcserver_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/meaning"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// Private tools are found by what they mean, if the operator wants it, by their owners. To others it makes no difference
// at all, by whatever words, whether they have vectors.
func TestPrivateToolsAreFoundByMeaningByTheirOwnersOnly(t *testing.T) {
	ctx := testkit.Context(t)
	e := serveEndpoints(t)
	url := testkit.Database(t)
	open := func(change func(*meaning.Options)) (*finding, *meaning.Keeper) {
		var n *node.Node
		keeper := keeperOf(t, url, &n, e.URL, change)
		shelf := finder.NewShelf(discovery.DefaultWeights(), nil)
		shelf.Compare(keeper.Vectors)
		shelf.ComparePrivate(keeper.Own)
		n = node.Start(t, url, node.Options{MaxStaleness: 20 * time.Millisecond, Discovery: grpcserver.DiscoveryOptions{Shelf: shelf, Meaning: keeper}})
		return &finding{t, clientOf(n.Conn, url), v1.NewDiscoveryServiceClient(n.Conn), n}, keeper
	}
	with, keeper := open(func(*meaning.Options) {})
	with.apply(ctx, t, libraryOf(20))
	without, other := open(func(o *meaning.Options) { o.Private = nil })
	const wordless = "where do those spices grow"
	find := func(f *finding, user, query string) *v1.SearchToolsResponse {
		r := searchBy(user, query)
		r.Explain = true
		p := f.search(r)
		p.Revision = ""
		return p
	}
	for _, k := range []*meaning.Keeper{other, keeper} {
		if err := k.Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if p := find(without, "ann", wordless); len(p.GetMatches()) > 0 {
		t.Fatalf("found %v by words: this test shows nothing", matchIDs(p))
	}
	if err := keeper.SyncOwn(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	p := find(with, "ann", wordless)
	if len(p.GetMatches()) == 0 || !p.GetMatches()[0].GetOwn() || p.GetMatches()[0].GetWhyMatched()[0].GetKind() != v1.MatchReasonKind_MATCH_REASON_KIND_MEANING {
		t.Errorf("Ann finds %v", p.GetMatches())
	}
	for _, query := range []string{wordless, "zanzibar", "quokka log", "notes", "diary of spices", "what comes out of those clouds", "ann.notes", "keeps a collection of comets"} {
		if one, two := find(with, "bob", query), find(without, "bob", query); !proto.Equal(one, two) {
			t.Errorf("%q: Bob finds %v\nwithout Ann's vectors %v", query, one, two)
		}
	}
	if v := keeper.Own("bob"); v != nil {
		t.Errorf("Bob has %v", v.ByTool)
	}
	for tool := range keeper.Vectors().ByTool {
		if tool == "ann.notes" || tool == "ann.more" {
			t.Errorf("%s is among the shared ones", tool)
		}
	}
	if got := fmt.Sprint(len(keeper.Own("ann").ByTool)); got != "2" {
		t.Errorf("Ann has %s vectors", got)
	}
}
