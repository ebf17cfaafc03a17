package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// What is folded into users' rows is what the tables of devices and memberships say, whatever was written.
func TestUsersAreFoldedAsTheirTablesSay(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	store, err := postgres.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	edit := func(e admin.Edit, users ...id.User) error {
		_, _, err := store.Edit(ctx, users, func(admin.Manifest) (admin.Edit, error) { return e, nil })
		return err
	}
	var world admin.Manifest
	world.DeviceTypes = []availability.DeviceType{{ID: "phone"}, {ID: "display"}}
	world.Groups = []availability.Group{{ID: "free"}, {ID: "premium"}}
	if err := edit(admin.Edit{Manifest: world}); err != nil {
		t.Fatal(err)
	}
	instants := rapid.SampledFrom([]time.Time{{}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)})
	rapid.Check(t, func(rt *rapid.T) {
		user := rapid.SampledFrom([]id.User{"ann", "bob"}).Draw(rt, "user")
		u := availability.User{ID: user}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID[string]).Draw(rt, "devices") {
			u.Devices = append(u.Devices, availability.Device{ID: id.Device(string(user) + "-" + name),
				Type: rapid.SampledFrom([]id.DeviceType{"phone", "display"}).Draw(rt, "type")})
		}
		for _, group := range rapid.SliceOfDistinct(rapid.SampledFrom([]id.Group{"free", "premium"}), rapid.ID[id.Group]).Draw(rt, "groups") {
			u.Memberships = append(u.Memberships, availability.Membership{Group: group, Expire: instants.Draw(rt, "expire")})
		}
		if err := edit(admin.Edit{Manifest: admin.Manifest{Users: []availability.User{u}}}, user); err != nil {
			rt.Fatal(err)
		}
		var differ int
		err := conn.QueryRow(ctx, `
			WITH folded AS (
			    SELECT user_id, 'device' AS kind, d.id, d.type_id AS one, NULL AS other FROM users, unnest(device_ids, device_type_ids) AS d (id, type_id)
			    UNION ALL
			    SELECT user_id, 'membership', m.id, nullif(m.start, '0001-01-01 00:00:00+00')::text, nullif(m.expire, '0001-01-01 00:00:00+00')::text
			    FROM users, unnest(group_ids, start_times, expire_times) AS m (id, start, expire)
			), stored AS (
			    SELECT user_id, 'device' AS kind, device_id AS id, device_type_id AS one, NULL AS other FROM devices
			    UNION ALL
			    SELECT user_id, 'membership', group_id, start_time::text, expire_time::text FROM memberships
			)
			SELECT count(*) FROM ((SELECT * FROM folded EXCEPT ALL SELECT * FROM stored) UNION ALL (SELECT * FROM stored EXCEPT ALL SELECT * FROM folded)) AS d`).Scan(&differ)
		if err != nil || differ != 0 {
			rt.Fatalf("%d rows differ, %v", differ, err)
		}
	})
}
