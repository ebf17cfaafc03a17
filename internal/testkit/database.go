package testkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Database returns the address of a fresh database with all migrations applied,
// which no other test uses. It is dropped when the test has passed; when it has
// failed it is kept, and the test's output says where it is.
func Database(t testing.TB) string {
	t.Helper()
	admin := start(t)
	template, err := shared.template(admin)
	if err != nil {
		t.Fatalf("testkit: migrating the template database: %v", err)
	}
	return create(t, admin, template)
}

// EmptyDatabase is like Database, but no migration was applied.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	// Not the default template1: on a shared server anybody may be connected to
	// it, which makes cloning it fail, and anything may be in it.
	return create(t, start(t), "template0")
}

func start(t testing.TB) (admin string) {
	t.Helper()
	admin, err := shared.adminURL()
	if err != nil {
		t.Fatalf("testkit: no PostgreSQL to test with: %v", err)
	}
	return admin
}

// create clones the template into a database for the test.
func create(t testing.TB, admin, template string) string {
	t.Helper()
	name := "toolgrant_test_" + strings.ToLower(rand.Text()[:16])
	address, err := withDatabase(admin, name)
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	sql := "CREATE DATABASE " + quote(name) + " TEMPLATE " + quote(template) + shared.strategy()
	if err := execute(Context(t), admin, sql); err != nil {
		t.Fatalf("testkit: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("testkit: the database of this failed test is kept: %s%s", address, shared.lifetime())
			return
		}
		// The test's own context has ended by now. FORCE, because a test may
		// leave connections open.
		ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
		defer cancel()
		if err := execute(ctx, admin, "DROP DATABASE "+quote(name)+" WITH (FORCE)"); err != nil {
			t.Errorf("testkit: %v", err)
		}
	})
	return address
}

// strategy is how the private server copies templates: files, which is faster than through the log where nothing waits for
// the disk. Another server may not know it.
func (s *server) strategy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postgres == nil {
		return ""
	}
	return " STRATEGY FILE_COPY"
}

// lifetime tells how long a kept database can be looked at.
func (s *server) lifetime() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postgres == nil {
		return ""
	}
	return fmt.Sprintf(" (data directory %s) until this test process ends; "+
		"to look at it afterwards, run the test with %s set to a server of yours", s.dir, serverVariable)
}

func execute(ctx context.Context, address, sql string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// withDatabase returns the address of another database of the same server.
func withDatabase(address, name string) (string, error) {
	other := address + " dbname=" + name // keywords and values: the last one counts
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		u, err := url.Parse(address)
		if err != nil {
			// url's own error quotes the address, with the password in it.
			return "", errors.New("the server's address is not a valid connection string")
		}
		u.Path = "/" + name
		other = u.String()
	}
	// An address can name its database in more ways than one. Tests must not
	// end up in a database that is somebody's.
	config, err := pgx.ParseConfig(other)
	if err != nil {
		return "", err
	}
	if config.Database != name {
		return "", errors.New("the server's address must not name a database other than as its path")
	}
	return other, nil
}
