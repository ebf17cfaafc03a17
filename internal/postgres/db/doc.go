// Package db is what sqlc makes of sql/queries and sql/schema: a method per query and a type per row. Only
// internal/postgres imports it. This file is the only one here that is written by hand.
package db
