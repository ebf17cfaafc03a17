// Package schema holds the migrations of Toolgrant's database: goose files, which sqlc reads as well.
// Files that were released never change; a change of the schema is a new file.
package schema

import "embed"

// FS holds the migrations.
//
//go:embed *.sql
var FS embed.FS
