// Package schema holds the migrations of Toolgrant's database: goose files, which sqlc reads as well.
// Files that were released never change; a change of the schema is a new file.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// FS holds the migrations.
//
//go:embed *.sql
var FS embed.FS

// Versions are the numbers of the migrations, in their order.
func Versions() ([]int64, error) {
	names, err := fs.Glob(FS, "*.sql")
	if err != nil {
		return nil, err
	}
	versions := make([]int64, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(name, "_")
		if versions[i], err = strconv.ParseInt(number, 10, 64); err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return versions, nil
}
