package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEndpoint(t *testing.T) {
	for address, fine := range map[string]bool{"": true, "https://host/v1/embeddings": true, "http://127.0.0.1:8080/rerank": true,
		"host/path": false, "ftp://host/": false, "https:///path": false, "https://user:secret@host/": false, "://": false} {
		err := endpoint(address)
		if (err == nil) != fine {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells the password: %v", address, err)
		}
	}
}

func TestEmbeddingsThatCannotBe(t *testing.T) {
	for _, test := range []struct {
		want string
		args []string
	}{
		{"needs embedding_url", []string{"--embedding-private-tools"}},
		{"embedding-retention: must be at least 48h", []string{"--embedding-retention=24h"}},
		{"embedding-model: must have at most 256 bytes", []string{"--embedding-model=" + strings.Repeat("m", 257)}},
	} {
		if _, err := load(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %s", test.args, err, test.want)
		}
	}
	if c, err := load(t, "--embedding-url=http://h/", "--embedding-private-tools", "--embedding-retention=48h"); err != nil || !c.EmbeddingPrivateTools {
		t.Error(err)
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) string {
		path := filepath.Join(dir, fmt.Sprintf("%x", content)[:min(2*len(content), 20)]+".key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	t.Setenv("TEST_KEY", " sk-1 \n")
	t.Setenv("TEST_EMPTY", "")
	for reference, want := range map[string]string{"": "", "env:TEST_KEY": "sk-1", file("sk-2\n"): "sk-2"} {
		if key, err := Resolve(reference); err != nil || string(key) != want {
			t.Errorf("%s: %q, %v", reference, string(key), err)
		}
	}
	for _, reference := range []string{"sk-secret", "env:", "file:", "env:TEST_EMPTY", "env:TEST_NOT_SET", "file:" + dir + "/none", file("\n"), file("two words"),
		file("line\nHeader: x"), file(strings.Repeat("x", 9000))} {
		key, err := Resolve(reference)
		if err == nil || key != "" {
			t.Errorf("%s: %q, %v", reference, string(key), err)
		} else if strings.Contains(err.Error(), "sk-secret") || strings.Contains(err.Error(), "two words") {
			t.Errorf("the error tells the key: %v", err)
		}
	}
}
