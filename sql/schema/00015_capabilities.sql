-- +goose Up

ALTER TABLE tools
    -- What the tool declares about itself, but for what refers to other tools.
    ADD COLUMN capability jsonb NOT NULL DEFAULT '{}',
    -- When it is put aside for failing; null: as the server is set.
    ADD COLUMN fail_threshold integer CONSTRAINT tools_fail_threshold_ck CHECK (fail_threshold BETWEEN 1 AND 1000),
    ADD COLUMN cooldown_ms integer CONSTRAINT tools_cooldown_ms_ck CHECK (cooldown_ms BETWEEN 100 AND 3600000);

CREATE TABLE tool_fallbacks (
    tool_id text COLLATE "C" NOT NULL CONSTRAINT tool_fallbacks_tool_id_fk REFERENCES tools ON DELETE CASCADE,
    position integer NOT NULL CONSTRAINT tool_fallbacks_position_ck CHECK (position >= 1),
    fallback_tool_id text COLLATE "C" NOT NULL CONSTRAINT tool_fallbacks_fallback_tool_id_fk REFERENCES tools,
    CONSTRAINT tool_fallbacks_pk PRIMARY KEY (tool_id, position),
    CONSTRAINT tool_fallbacks_fallback_tool_id_uq UNIQUE (fallback_tool_id, tool_id),
    CONSTRAINT tool_fallbacks_self_ck CHECK (tool_id <> fallback_tool_id)
);
COMMENT ON TABLE tool_fallbacks IS 'What to use instead of a tool that cannot be used, best first.';

ALTER TABLE tool_types
    ADD COLUMN functions jsonb NOT NULL DEFAULT '[]',
    ADD CONSTRAINT tool_types_functions_ck CHECK (functions = '[]' OR source = 'EXTERNAL_MCP');

ALTER TABLE groups ADD COLUMN permissions text[] NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE groups DROP COLUMN permissions;
ALTER TABLE tool_types DROP COLUMN functions;
DROP TABLE tool_fallbacks;
ALTER TABLE tools DROP COLUMN capability, DROP COLUMN fail_threshold, DROP COLUMN cooldown_ms;
