-- +goose Up

-- What a tool of an external MCP server has of it: which functions, and with which secrets they are called.
ALTER TABLE tools ADD COLUMN mcp jsonb NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE tools DROP COLUMN mcp;
