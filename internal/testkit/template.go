package testkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/sql/schema"
)

// templateLock is the advisory lock under which a template is made: test
// processes may share a server (and must then use the same address, for such
// locks are a database's). The number only has to be ours.
const templateLock = 0x7467_7465_7374

// template makes the migrated database that tests' databases are cloned from,
// once per process, and returns its name.
func (s *server) template(admin string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, err := templateName(schema.FS)
	if err != nil {
		return "", err
	}
	if !s.templateMade {
		s.templateMade = true
		// Not the context of the test that happens to be first: the others
		// need the template, too.
		ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
		defer cancel()
		s.templateErr = makeTemplate(ctx, admin, name, postgres.Migrate)
	}
	return name, s.templateErr
}

// templateName derives the template's name from the migrations, so that those
// of different source trees can live on one server.
func templateName(migrations fs.FS) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(migrations, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the migrations: %w", err)
	}
	return "toolgrant_template_" + hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// makeTemplate creates and migrates the template unless some process already
// did. It is marked as a template when it is complete, not before: one without
// the mark was left by a process that was interrupted.
func makeTemplate(ctx context.Context, admin, name string, migrate func(ctx context.Context, url string) error) (err error) {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }() // which unlocks, too
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return err
	}

	var complete bool
	err = conn.QueryRow(ctx, "SELECT datistemplate FROM pg_database WHERE datname = $1", name).Scan(&complete)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return err
	case complete:
		return nil
	default:
		if _, err := conn.Exec(ctx, "DROP DATABASE "+quote(name)+" WITH (FORCE)"); err != nil {
			return err
		}
	}

	if _, err := conn.Exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE template0"); err != nil {
		return err
	}
	address, err := withDatabase(admin, name)
	if err != nil {
		return err
	}
	if err := migrate(ctx, address); err != nil {
		return err
	}
	// Nobody may connect any more: a connection to it would make cloning fail.
	_, err = conn.Exec(ctx, "ALTER DATABASE "+quote(name)+" WITH IS_TEMPLATE true ALLOW_CONNECTIONS false")
	return err
}
