// Package postgres keeps Toolgrant's truth in PostgreSQL. It is the only package that knows SQL.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/toolgrant/toolgrant/sql/schema"
)

// Migrate brings the database at url to the newest schema. Servers may call it at the same time: an
// advisory lock lets one work while the others wait. It blocks until done or until ctx ends.
func Migrate(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return hideURL(err)
	}
	limitConnecting(config)
	db := stdlib.OpenDB(*config)
	defer db.Close()
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, schema.FS, goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// limitConnecting gives up connecting to a database that accepts connections and says nothing, unless the URL
// has a connect_timeout of its own.
func limitConnecting(config *pgx.ConnConfig) {
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
}

// hideURL words the refusal of a database URL without the URL: pgx leaves out some passwords, not all.
func hideURL(err error) error {
	var refused *pgconn.ParseConfigError
	if errors.As(err, &refused) {
		refused.ConnString = "..."
	}
	return fmt.Errorf("database URL: %w", err)
}
