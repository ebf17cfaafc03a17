package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestKeysAreGivenOutAndTakenBack(t *testing.T) {
	admin, hash := apikey.NewSecret()
	o := operator{testkit.Context(t), node.Start(t, testkit.Database(t), node.Options{AdminKey: &hash}).Address}
	as := func(secret string) []string {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--token-file", file}
	}
	run := func(secret string, args ...string) string {
		t.Helper()
		return strings.TrimSpace(o.run(t, "", append(as(secret), args...)...))
	}
	first := run(admin, "keys", "create", "ops", "--role", "operator", "--title", "the team", "--request-id", "r1")
	if _, ok := apikey.HashOf(first); !ok {
		t.Fatalf("printed %q", first)
	}
	if again := run(admin, "keys", "create", "ops", "--role", "operator", "--title", "the team", "--request-id", "r1"); strings.Contains(again, apikey.Prefix) {
		t.Errorf("printed %q", again)
	}
	run(first, "get", "avatars")
	second := run(admin, "keys", "rotate", "ops", "--overlap", "1h")
	run(first, "get", "avatars")
	run(second, "get", "avatars")
	if list := run(admin, "keys", "list"); !strings.Contains(list, "the team") || !strings.Contains(list, "good") || strings.Contains(list, apikey.Prefix) {
		t.Errorf("got %s", list)
	}
	run(admin, "keys", "revoke", "ops", "--reason", "lost")
	for _, secret := range []string{first, second, ""} {
		_, err := o.try("", append(as(secret), "get", "avatars")...)
		if err == nil || exitStatus(err) != exitRefused {
			t.Errorf("with %q: %v", secret, err)
		}
	}
	if list := run(admin, "keys", "list"); !strings.Contains(list, "revoked") {
		t.Errorf("got %s", list)
	}
	if log := run(admin, "audit", "--kind", "api_key"); !strings.Contains(log, "key-file:admin") || !strings.Contains(log, "lost") {
		t.Errorf("got %s", log)
	}
	t.Setenv("TOOLGRANT_TOKEN", admin)
	o.run(t, "", "keys", "list")
	if _, err := o.try("", "keys", "create", "x", "--role", "king"); err == nil || !strings.Contains(err.Error(), "chat_server") {
		t.Errorf("got %v", err)
	}
}
