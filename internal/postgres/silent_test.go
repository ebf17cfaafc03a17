package postgres_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestConnectingToASilentDatabaseFails(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // connections come about, and nobody says anything
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	url := "postgres://u@" + listener.Addr().String() + "/db?sslmode=disable"
	for name, connect := range map[string]func(context.Context) error{
		"Migrate": func(ctx context.Context) error { return postgres.Migrate(ctx, url) },
		"Open": func(ctx context.Context) error {
			_, err := postgres.Open(ctx, url)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			if err := connect(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
				t.Errorf("got %v; its context: %v", err, ctx.Err())
			}
		})
	}
}
