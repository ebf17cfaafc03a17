package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// ofAuthentication are the settings by which servers listen for others than their own machine.
var ofAuthentication = []string{"api_keys", "admin_key_file", "allow_plaintext", "tls_cert_file", "tls_key_file"}

// deployed are the files of deploy/, by name.
func deployed(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"*", "*/*"} {
		names, err := filepath.Glob("../../deploy/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if data, err := os.ReadFile(name); err == nil {
				files[strings.TrimPrefix(name, "../../deploy/")] = string(data)
			}
		}
	}
	if len(files) < 10 {
		t.Fatalf("only %d files in deploy/", len(files))
	}
	return files
}

// Every setting that is deployed is one, with a value that it may have; and a server has more time to end than it takes.
func TestDeployedSettingsAreSettings(t *testing.T) {
	var known []string
	for _, s := range settingsOf(t) {
		known = append(known, s.Name)
	}

	assigned := regexp.MustCompile(`TOOLGRANT_([A-Z_]+)(?:: |=|, value: )"?([^\s"},]+)`)
	for name, text := range deployed(t) {
		for _, m := range regexp.MustCompile(`TOOLGRANT_([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
			if setting := strings.ToLower(m[1]); setting != "config" && !slices.Contains(known, setting) {
				t.Errorf("%s: %s is no setting", name, setting)
			}
		}
		var drain, shutdown time.Duration
		for _, m := range assigned.FindAllStringSubmatch(text, -1) {
			setting, value := strings.ToLower(m[1]), m[2]
			if slices.Contains(ofAuthentication, setting) || setting == "config" || strings.HasSuffix(setting, "_url") || strings.HasSuffix(setting, "_addr") || strings.Contains(value, "%") {
				continue
			}
			if _, err := command(t, "config", "check", "--"+strings.ReplaceAll(setting, "_", "-")+"="+value); err != nil {
				t.Errorf("%s: %s is not valid: %v", name, m[0], err)
			}
			switch d, _ := time.ParseDuration(value); setting {
			case "drain_delay":
				drain = d
			case "shutdown_timeout":
				shutdown = d
			}
		}
		grace := regexp.MustCompile(`(?:terminationGracePeriodSeconds|stop_grace_period): (\d+)`).FindStringSubmatch(text)
		if grace == nil {
			continue
		}
		if d, err := time.ParseDuration(grace[1] + "s"); err != nil || drain == 0 || d <= drain+shutdown {
			t.Errorf("%s: %s seconds of grace for %s and %s", name, grace[1], drain, shutdown)
		}
	}
}

func settingsOf(t *testing.T) []config.Setting {
	t.Helper()
	c, err := config.Flags(pflag.NewFlagSet("", pflag.ContinueOnError))()
	if err != nil {
		t.Fatal(err)
	}
	return c.Settings()
}

// No file has a secret in it, and all YAML is some.
func TestDeployedFilesAreWhole(t *testing.T) {
	for name, text := range deployed(t) {
		if regexp.MustCompile(`(?i)(password|secret|key)["']?\s*[:=]\s*["']?[a-z0-9+/]{16,}["']?\s*$`).MatchString(text) {
			t.Errorf("%s: a secret?", name)
		}
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var document map[string]any
			err := decoder.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// systemd itself says what it thinks of the unit, where it is installed.
func TestTheUnitOfSystemd(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT CHECKED: systemd-analyze is not installed")
	}
	unit := filepath.Join(t.TempDir(), "toolgrant.service")
	text := strings.Replace(deployed(t)["systemd/toolgrant.service"], "/usr/local/bin/server", os.Args[0], 1)
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "verify", unit).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReadyAsksTheServer(t *testing.T) {
	t.Parallel()
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t))
	if _, err := command(t, "ready", "--http-addr="+server.web); err == nil {
		t.Error("a server is ready that does not run")
	}
	server.start()
	server.awaitReady()
	if _, err := command(t, "ready", "--http-addr="+server.web); err != nil {
		t.Error(err)
	}
}
