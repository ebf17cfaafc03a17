package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// config is what can be set, by flag or by environment variable; the flag wins.
type config struct {
	grpcAddr        string        // default 127.0.0.1:7700
	httpAddr        string        // /healthz and /readyz; default 127.0.0.1:7701
	databaseURL     string        // empty: a private PostgreSQL in dataDir
	dataDir         string        // default /var/lib/toolgrant for root, else in the user's data folder
	shutdownTimeout time.Duration // for calls in flight at shutdown; default 10 s
}

func defaults() *config {
	return &config{
		grpcAddr:        env("GRPC_ADDR", "127.0.0.1:7700"),
		httpAddr:        env("HTTP_ADDR", "127.0.0.1:7701"),
		databaseURL:     env("DATABASE_URL", ""),
		dataDir:         env("DATA_DIR", defaultDataDir()),
		shutdownTimeout: 10 * time.Second,
	}
}

func env(name, otherwise string) string {
	if value := os.Getenv("TOOLGRANT_" + name); value != "" {
		return value
	}
	return otherwise
}

// defaultDataDir is a folder that outlives the checkout, and, for root, one that PostgreSQL's user can reach.
func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/toolgrant"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "toolgrant")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "toolgrant-data"
	}
	return filepath.Join(home, ".local", "share", "toolgrant")
}

func (c *config) flags(f *pflag.FlagSet) {
	f.StringVar(&c.grpcAddr, "grpc-addr", c.grpcAddr, "where gRPC is served (TOOLGRANT_GRPC_ADDR)")
	f.StringVar(&c.httpAddr, "http-addr", c.httpAddr, "where /healthz and /readyz are served (TOOLGRANT_HTTP_ADDR)")
	f.StringVar(&c.databaseURL, "database-url", c.databaseURL, "a PostgreSQL database; empty: a private one in --data-dir (TOOLGRANT_DATABASE_URL)")
	f.StringVar(&c.dataDir, "data-dir", c.dataDir, "where the private PostgreSQL keeps its data (TOOLGRANT_DATA_DIR)")
	f.DurationVar(&c.shutdownTimeout, "shutdown-timeout", c.shutdownTimeout, "how long calls in flight may take at shutdown")
}

// validate names every fault. Without authentication only this machine may ask.
func (c *config) validate() error {
	var faults []error
	for flag, address := range map[string]string{"--grpc-addr": c.grpcAddr, "--http-addr": c.httpAddr} {
		host, _, err := net.SplitHostPort(address)
		ip := net.ParseIP(host)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: must be host:port, not %q", flag, address))
		case host != "localhost" && (ip == nil || !ip.IsLoopback()):
			faults = append(faults, fmt.Errorf("%s: %q is not a loopback address, and there is no authentication yet", flag, address))
		}
	}
	if c.shutdownTimeout < 0 {
		faults = append(faults, errors.New("--shutdown-timeout: must not be negative"))
	}
	return errors.Join(faults...)
}
