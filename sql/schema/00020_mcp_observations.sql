-- +goose Up

CREATE TABLE mcp_observations (
    tool_type_id text COLLATE "C" NOT NULL CONSTRAINT mcp_observations_tool_type_id_fk REFERENCES tool_types ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL CONSTRAINT mcp_observations_name_ck CHECK (name ~ '^[A-Za-z0-9_.-]{1,128}$'),
    -- What the server says of the function; null: it has none of that name.
    function jsonb,
    observe_time timestamptz NOT NULL,
    CONSTRAINT mcp_observations_pk PRIMARY KEY (tool_type_id, name)
);
COMMENT ON TABLE mcp_observations IS 'Where external MCP servers differ from what is pinned in tool_types.functions.';

-- +goose Down
DROP TABLE mcp_observations;
