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

// MCPServer returns the path of a published MCP server's command:
// "everything", "filesystem" or "memory". It fails the test where they are not
// installed.
func MCPServer(t testing.TB, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	folder := fmt.Sprintf("mcp-servers-%x", sha256.Sum256(mcpServers))[:len("mcp-servers-")+12]
	path := filepath.Join(cache, "toolgrant", folder, "node_modules", ".bin", "mcp-server-"+name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("testkit: %v: run make mcp-servers", err)
	}
	return path
}
