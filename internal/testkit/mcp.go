package testkit

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// mcpServers names, by its digest, the folder in which tools/install-mcp-servers
// installs what it pins.
//
//go:embed mcpservers/package-lock.json
var mcpServers []byte

// nodeModules is where published packages are installed. It fails the test
// where they are not.
func nodeModules(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	folder := fmt.Sprintf("mcp-servers-%x", sha256.Sum256(mcpServers))[:len("mcp-servers-")+12]
	modules := filepath.Join(cache, "toolgrant", folder, "node_modules")
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("testkit: %v: run make mcp-servers", err)
	}
	return modules
}

// NodeCommand returns the path of a command of a published package.
func NodeCommand(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(nodeModules(t), ".bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("testkit: %v", err)
	}
	return path
}

// MCPServer returns the path of a published MCP server's command:
// "everything", "filesystem" or "memory".
func MCPServer(t testing.TB, name string) string {
	t.Helper()
	return NodeCommand(t, "mcp-server-"+name)
}

// NodeScript returns the path of a copy of a script that may import the
// published packages.
func NodeScript(t testing.TB, source string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	folder := t.TempDir()
	if err := os.Symlink(nodeModules(t), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatalf("testkit: %v", err)
	}
	path := filepath.Join(folder, filepath.Base(source))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatalf("testkit: %v", err)
	}
	return path
}
