package grpcserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// A tool that comes after much use is told from one that was there and that nobody wanted: at every server, after a restart,
// and after it was changed.
func TestANewToolBesideUsedOnes(t *testing.T) {
	s := openSchool(t)
	ctx := testkit.Context(t)
	gallery := func(tools ...string) {
		t.Helper()
		definitions := map[string]string{"painter": "make_image, description: Paints an image.", "framer": "frame_image, description: Put a frame of wood around a picture",
			"hanger": "hang_image, description: Hang a picture on a wall of wood"}
		var list strings.Builder
		for _, tool := range tools {
			fmt.Fprintf(&list, "  - {tool_id: %s, tool_type_id: plain, name: %s}\n", tool, definitions[tool])
		}
		s.apply(ctx, t, "tools:\n"+list.String()+"device_types:\n  - {device_type_id: phone, tool_ids: ["+strings.Join(tools, ", ")+"]}\n")
	}
	gallery("painter", "hanger")

	d := openDiary(t, s.url, time.Now())
	for i := range 400 {
		var features []int64
		for _, f := range discovery.FeaturesOf(fmt.Sprintf("paint a picture with a fox in style%c and colour%c", 'a'+rune(i%26), 'a'+rune(i/26))) {
			features = append(features, int64(f))
		}
		d.write("INSERT INTO search_uses (call_id, search_id, user_id, group_ids, tool_id, private, features, report_time) VALUES ($1, $2, $3, '{}', 'painter', false, $4, now())",
			fmt.Sprint("call-", i), i, fmt.Sprint("user-", i), features)
	}
	gallery("painter", "hanger", "framer")
	s.read()
	first := func(f *finding, query string) string {
		t.Helper()
		return f.search(searchBy("bob", query)).GetMatches()[0].GetToolId()
	}
	const framing, hanging = "paint a frame with a fox in style and colour", "paint a wall with a fox in style and colour"
	if got := first(s.finding, framing); got != "framer" {
		t.Errorf("beside the new tool %s is first", got)
	}
	if m := s.search(explainedBy("bob", framing)).GetMatches(); m[0].GetFeatures().GetNewCredit() == 0 || m[1].GetFeatures().GetNewCredit() != 0 {
		t.Errorf("what is credited: %v", m)
	}
	if got := first(s.finding, hanging); got != "painter" {
		t.Errorf("beside the tool that nobody wanted %s is first", got)
	}

	// A change of the tool does not make it new again, or old.
	var before, after, noted time.Time
	since := func(tool string) (at time.Time) {
		t.Helper()
		if err := d.conn.QueryRow(ctx, "SELECT create_time FROM tools WHERE tool_id = $1", tool).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	before = since("framer")
	s.apply(ctx, t, "tools:\n  - {tool_id: framer, tool_type_id: plain, name: frame_image, description: Put a frame of wood around any picture}\n")
	if after = since("framer"); !after.Equal(before) {
		t.Errorf("since %v, after a change %v", before, after)
	}
	if noted = since("hanger"); !noted.Equal(since("painter")) || !noted.Before(before) {
		t.Errorf("since %v and %v, and the newer one %v", noted, since("painter"), before)
	}
	s.other.read()
	want := s.search(explainedBy("bob", framing))
	want.Revision = ""
	for name, server := range map[string]*finding{"another server": s.other, "a server that starts": s.open(t, s.url)} {
		got := server.search(explainedBy("bob", framing))
		if got.Revision = ""; !proto.Equal(got, want) {
			t.Errorf("%s answers %v\nwant %v", name, got, want)
		}
	}

	// Tools from before it was noted were always there.
	d.write("UPDATE tools SET create_time = NULL WHERE tool_id = 'framer'")
	if got := first(s.open(t, s.url), framing); got != "painter" {
		t.Errorf("beside a tool from before it was noted %s is first", got)
	}
}
