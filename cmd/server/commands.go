package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolgrant/toolgrant/internal/checkup"
	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/redisstore"
	"github.com/toolgrant/toolgrant/internal/version"
)

// loader reads the settings.
type loader func() (*config.Config, error)

func migrateCommand(load loader) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database of --database-url to the newest schema, and exit",
		Long: "Bring the database of --database-url to the newest schema, and exit. Servers do so when they start; this is for\n" +
			"those that may not change the schema. It may run at any time, also while servers of the version before serve.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := load()
			if err != nil {
				return err
			}
			if c.DatabaseURL == "" {
				return fmt.Errorf("--database-url (TOOLGRANT_DATABASE_URL) is needed: the embedded database migrates at start")
			}
			return postgres.Migrate(command.Context(), string(c.DatabaseURL))
		},
	}
}

func configCommand(load loader) *cobra.Command {
	all := &cobra.Command{Use: "config", Short: "Look at the settings", Args: cobra.NoArgs}
	all.AddCommand(&cobra.Command{
		Use:   "check",
		Short: "Say which settings a server would have and where from, or all that is wrong with them, and exit",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := load()
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, s := range c.Settings() {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, s.Value, s.Source)
			}
			return table.Flush()
		},
	})
	return all
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and exit",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), version.Long())
			return err
		},
	}
}

// examineTimeout bounds all that doctor asks of others.
const examineTimeout = 20 * time.Second

func doctorCommand(load loader) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with the settings, the database, Redis and the clocks, and exit",
		Long: "Say what is wrong with the settings, the database, Redis and the clocks, and exit; with status 1 if something keeps a\n" +
			"server from serving, or from keeping what it promises. Nothing is changed: run it beside servers that serve.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := load()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), examineTimeout)
			defer cancel()
			r := examine(ctx, c)
			if err := r.Print(command.OutOrStdout()); err != nil {
				return err
			}
			if r.Worst() == checkup.Bad {
				return errors.New("something is wrong: see above")
			}
			return nil
		},
	}
}

func examine(ctx context.Context, c *config.Config) checkup.Report {
	var r checkup.Report
	r.OK("version", "%s", version.Long())
	for _, address := range []struct{ what, address string }{{"gRPC", c.GRPCAddr}, {"HTTP", c.HTTPAddr}} {
		examineAddress(&r, address.what, address.address)
	}
	if c.DatabaseURL == "" {
		examineDataDir(&r, c.DataDir)
	} else {
		r = append(r, postgres.Examine(ctx, string(c.DatabaseURL))...)
	}
	if c.RedisURL == "" {
		r.Note("Redis", "a private one in memory", "right for one server only; several need a redis_url")
	} else {
		r = append(r, redisstore.Examine(ctx, string(c.RedisURL))...)
	}
	return r
}

// examineAddress tells whether a server could listen there.
func examineAddress(r *checkup.Report, what, address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		r.Note(what+" address", err.Error(), "that is as it should be while the server runs")
		return
	}
	_ = listener.Close()
	r.OK(what+" address", "%s is free", address)
}

// examineDataDir tells whether a private database could be there.
func examineDataDir(r *checkup.Report, dir string) {
	existing := dir
	for {
		if _, err := os.Stat(existing); err == nil || existing == filepath.Dir(existing) {
			break
		}
		existing = filepath.Dir(existing)
	}
	probe, err := os.CreateTemp(existing, ".toolgrant-doctor-")
	if err != nil {
		r.Bad("data_dir", err.Error(), "choose another, or a database of yours (database_url)")
		return
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	r.Note("PostgreSQL", "a private one in "+dir, "for one server on one machine; have others, and backups, with a database_url")
}
