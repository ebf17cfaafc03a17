package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// maxChanges bounds what is read of the changes at once. Who missed more reads everything anew.
const maxChanges = 50_000

// changes is what was committed between two snapshots of the database.
type changes struct {
	revision revision.Revision // the later snapshot
	version  int64             // the catalogue's version in it
	lost     bool              // not all is known: anything may have changed
	timeline string            // of the database: another one if a standby was promoted
	ids      map[string][]string
}

// Kinds of changed objects that are not the catalogue's.
const (
	kindUser     = "user"
	kindChat     = "chat"
	kindApproval = "approval"
	kindAPIKey   = "api_key"
)

// touchesCatalog tells whether the compiled catalogue may differ.
func (c *changes) touchesCatalog() bool {
	for kind := range c.ids {
		if kind != kindUser && kind != kindChat && kind != kindApproval && kind != kindAPIKey {
			return true
		}
	}
	return c.lost
}

// changesSince reads what was changed since a revision; since the zero revision that is lost.
//
// The revision is a snapshot, so what is new is what this statement sees and the snapshot did not. A writer
// that was in progress at the snapshot is looked up by its number, however late it commits and whatever
// committed before it: no change is ever passed over. Some may have been deleted meanwhile, if they are
// older than the server keeps them (changes_horizon); then the answer is that changes are lost.
func (s *Store) changesSince(ctx context.Context, tx db.DBTX, since revision.Revision) (changes, error) {
	inProgress := make([]string, len(since.InProgress))
	for i, xid := range since.InProgress {
		inProgress[i] = strconv.FormatUint(xid, 10)
	}
	atMost := int32(maxChanges)
	if since.Xmax == 0 {
		atMost = 0
	}
	row, err := s.queries.ChangesSince(ctx, tx, db.ChangesSinceParams{
		Xmax: strconv.FormatUint(since.Xmax, 10), InProgress: inProgress, AtMost: atMost})
	if err != nil {
		return changes{}, err
	}
	if row.Timeline == "" {
		// Its snapshots do not tell what is in progress, and nothing can be written there.
		return changes{}, errStandby
	}
	c := changes{version: row.CatalogVersion, timeline: row.Timeline, ids: map[string][]string{}}
	if c.revision, err = s.readRevision(row.Snapshot); err != nil {
		return changes{}, err
	}
	if row.Xid != "" {
		own, err := strconv.ParseUint(row.Xid, 10, 64)
		if err != nil {
			return changes{}, err
		}
		c.revision = c.revision.Without(own) // it has not written yet what it will
	}
	horizon, err := strconv.ParseUint(row.Horizon, 10, 64)
	if err != nil {
		return changes{}, err
	}
	// A database that went back in time was restored from a backup.
	if row.RowsRead >= atMost || horizon >= since.Xmin || c.revision.Xmax < since.Xmax {
		c.lost = true
		return c, nil
	}
	for _, text := range row.KindsAndIds {
		kind, name, ok := strings.Cut(text, " ")
		if !ok {
			return changes{}, fmt.Errorf("not a change: %q", text)
		}
		c.ids[kind] = append(c.ids[kind], name)
	}
	return c, nil
}

// errStandby is what is wrong with a database address that leads to a standby.
var errStandby = &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable,
	Message: "the database is a standby, where nothing can be written; with several hosts, its address needs target_session_attrs=read-write"}

// Changes implements replica.Source.
func (s *Store) Changes(ctx context.Context, since revision.Revision) (replica.Delta, error) {
	found, err := s.changesSince(ctx, s.pool, since)
	if err != nil {
		return replica.Delta{}, translate(err)
	}
	held := s.compiled.Load()
	// What a standby that is promoted had not received is undone, and the numbers of those transactions and versions are
	// given again.
	before := s.timeline.Load()
	promoted := before != nil && *before != found.timeline
	if promoted {
		held = nil
		s.compiled.Store(nil)
	}
	if held == nil || held.version != found.version {
		err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
			if found, err = s.changesSince(ctx, tx, since); err != nil {
				return err
			}
			held, err = s.catalogAt(ctx, tx)
			return err
		})
		if err != nil {
			return replica.Delta{}, err
		}
	}
	lost := found.lost || promoted
	var keys *apikey.Ring
	if lost || len(found.ids[kindAPIKey]) > 0 { // what is read is at least as new as the snapshot
		if keys, err = s.APIKeyRing(ctx); err != nil {
			return replica.Delta{}, err
		}
	}
	s.timeline.Store(&found.timeline)
	return replica.Delta{Keys: keys, Revision: found.revision, Version: found.version, World: held.world, Lost: lost,
		Users: as[id.User](found.ids[kindUser]), Chats: as[id.Chat](found.ids[kindChat]), Approvals: refs(found.ids[kindApproval])}, nil
}

// refs reads the names of changed approvals: "user,approval".
func refs(names []string) []approval.Ref {
	list := make([]approval.Ref, len(names))
	for i, name := range names {
		user, own, _ := strings.Cut(name, ",")
		list[i] = approval.Ref{User: id.User(user), ID: id.Approval(own)}
	}
	return list
}
