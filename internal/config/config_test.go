package config

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func load(t *testing.T, args ...string) (*Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	load := Flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return load()
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheStrongerSourceWins(t *testing.T) {
	file := writeFile(t, "grpc_addr: 127.0.0.1:1\nhttp_addr: 127.0.0.1:1\nshutdown_timeout: 1s\n")
	t.Setenv("TOOLGRANT_CONFIG", file)
	t.Setenv("TOOLGRANT_GRPC_ADDR", "127.0.0.1:2")
	t.Setenv("TOOLGRANT_HTTP_ADDR", "127.0.0.1:2")
	t.Setenv("TOOLGRANT_SHUTDOWN_TIMEOUT", "") // as good as none
	t.Setenv("TOOLGRANT_DATA_DIR", "")
	t.Setenv("TOOLGRANT_DATABASE_URL", "postgres://db/x")
	c, err := load(t, "--grpc-addr=127.0.0.1:3", "--database-url=")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %s %q %s", c.GRPCAddr, c.HTTPAddr, c.ShutdownTimeout, string(c.DatabaseURL), c.DataDir)
	if want := `127.0.0.1:3 127.0.0.1:2 1s "" ` + defaultDataDir(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("TOOLGRANT_CONFIG", "/nowhere")
	if c, err = load(t, "--config", file); err != nil || c.ShutdownTimeout != time.Second {
		t.Errorf("--config beats its variable: %v %v", c.ShutdownTimeout, err)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	for _, variable := range []string{"CONFIG", "GRPC_ADDR", "HTTP_ADDR", "DATABASE_URL", "REDIS_URL", "DATA_DIR", "CALL_TIMEOUT", "SHUTDOWN_TIMEOUT"} {
		t.Setenv("TOOLGRANT_"+variable, "")
	}
	for _, args := range [][]string{nil, {"--config", writeFile(t, "# nothing\n")}} {
		c, err := load(t, args...)
		if err != nil || c.GRPCAddr != "127.0.0.1:7700" || c.ShutdownTimeout != 10*time.Second {
			t.Errorf("%v: %+v %v", args, c, err)
		}
	}
}

func TestEveryFaultIsNamedWithItsSource(t *testing.T) {
	file := writeFile(t, "grpc_adr: x\nhttp_addr: [a, b]\ndata_dir: ''\nhttp: {addr: x}\n")
	t.Setenv("TOOLGRANT_SHUTDOWN_TIMEOUT", "soon")
	_, err := load(t, "--config", file, "--grpc-addr", "0.0.0.0:7700")
	want := strings.Join([]string{
		file + ":1: grpc_adr: no such setting",
		file + ":4: http: no such setting",
		file + ":2: http_addr: must have one value",
		`TOOLGRANT_SHUTDOWN_TIMEOUT: must be a duration, such as 10s, not "soon"`,
		`--grpc-addr: "0.0.0.0:7700" is not a loopback address, and there is no authentication: set api_keys, jwt_issuers or mtls_subjects`,
		file + ":3: data_dir: must not be empty",
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestRefusedFiles(t *testing.T) {
	for content, want := range map[string]string{
		"shutdown_timeout: 10":                              `:1: shutdown_timeout: must be a duration, such as 10s, not "10"`,
		"shutdown_timeout: -1s":                             ":1: shutdown_timeout: must not be negative, as -1s is",
		"call_timeout: 0s":                                  ":1: call_timeout: must be more than 0, not 0s",
		"grpc_addr: localhost:1\ngrpc_addr: localhost:2":    `mapping key "grpc_addr" already defined at line 1`,
		"grpc_addr: localhost:1\n---\nhttp_addr: [nonsense": "must be one YAML document",
		"- grpc_addr":                                       "cannot unmarshal",
		"grpc_addr: localhost":                              `:1: grpc_addr: must be host:port, not "localhost"`,
		"grpc_addr: 'localhost:x'":                          `:1: grpc_addr: the port must be a number from 0 to 65535, not "x"`,
		"redis_url: localhost:6379":                         ":1: redis_url: scheme: must be there, as in redis://",
		"redis_url: redis://h:x/0":                          ":1: redis_url: port: must be a number from 1 to 65535",
		"config: other.yaml":                                ":1: config: no such setting",
		"data_dir:":                                         ":1: data_dir: must have one value",
	} {
		if _, err := load(t, "--config", writeFile(t, content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", content, err, want)
		}
	}
	if _, err := load(t, "--config", "/nowhere/server.yaml"); err == nil || !strings.Contains(err.Error(), "/nowhere/server.yaml") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestABadFlagIsReportedWithTheOtherFaults(t *testing.T) {
	_, err := load(t, "--shutdown-timeout=soon", "--http-addr=nonsense")
	if err == nil || err.Error() != `--shutdown-timeout: must be a duration, such as 10s, not "soon"`+"\n"+`--http-addr: must be host:port, not "nonsense"` {
		t.Errorf("got %v", err)
	}
}

func TestHelpShowsVariableAndDefaultAndNoSecret(t *testing.T) {
	t.Setenv("TOOLGRANT_DATABASE_URL", "postgres://u:password@h/db")
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	Flags(flags)
	help := flags.FlagUsages()
	for _, want := range []string{"--grpc-addr string", `(TOOLGRANT_GRPC_ADDR) (default "127.0.0.1:7700")`,
		"--shutdown-timeout duration", "(TOOLGRANT_SHUTDOWN_TIMEOUT) (default 10s)", "(TOOLGRANT_DATABASE_URL)\n", "(TOOLGRANT_CONFIG)"} {
		if !strings.Contains(help, want) {
			t.Errorf("no %s in\n%s", want, help)
		}
	}
	if strings.Contains(help, "password") {
		t.Errorf("it tells the password:\n%s", help)
	}
}

func TestTheReadmeHasEverySetting(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	for _, s := range (&Config{}).settings(flags) {
		row := fmt.Sprintf("| `%s` | `%s` | `--%s` | ", s.name, variable(s.name), s.flag.Name)
		if s.name != "data_dir" && s.flag.DefValue != "" {
			row += fmt.Sprintf("`%s` |", s.flag.DefValue)
		}
		if !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row %s", row)
		}
	}
}

func TestASecretIsNotPrinted(t *testing.T) {
	c, err := load(t, "--database-url", "postgres://u:password@h/db")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{string(encoded), fmt.Sprintf("%v %+v %#v %q %x", c, *c, *c, c.DatabaseURL, c.DatabaseURL)} {
		if strings.Contains(printed, "password") || strings.Contains(printed, "70617373") || !strings.Contains(printed, hidden) {
			t.Errorf("printed: %s", printed)
		}
	}
}
