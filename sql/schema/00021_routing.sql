-- +goose Up

-- By which strategy requests in words are answered: switched while servers run. It is no part of a manifest, so that
-- applying one does not undo a switch.
CREATE TABLE routing_modes (
    -- Null: of users of whose groups none has a mode.
    group_id text COLLATE "C" CONSTRAINT routing_modes_group_id_fk REFERENCES groups ON DELETE CASCADE,
    mode text NOT NULL CONSTRAINT routing_modes_mode_ck CHECK (mode IN ('LEGACY', 'HYBRID', 'V2'))
);
CREATE UNIQUE INDEX routing_modes_group_id_uq ON routing_modes (coalesce(group_id, ''));
COMMENT ON TABLE routing_modes IS 'By which strategy requests in words are answered, by group of users.';

-- A routing mode's object_id is its group's id, or * for all other users.
ALTER TABLE changes DROP CONSTRAINT changes_kind_ck, ADD CONSTRAINT changes_kind_ck CHECK (kind IN ('tool_type', 'tool',
    'mcp_server', 'device_type', 'group', 'avatar', 'default_avatar', 'user', 'chat', 'approval', 'routing_mode')) NOT VALID;

-- Besides searches, the table has narrowings: what ResolveTools kept of a large effective set for a message. Of a
-- message nothing is kept, so its features are empty and it teaches nothing.
ALTER TABLE searches
    ADD COLUMN kind text NOT NULL DEFAULT 'SEARCH' CONSTRAINT searches_kind_ck CHECK (kind IN ('SEARCH', 'NARROWING')),
    -- The user's then. LEGACY and HYBRID: it was not answered with what was found.
    ADD COLUMN routing_mode text NOT NULL DEFAULT 'V2' CONSTRAINT searches_routing_mode_ck CHECK (routing_mode IN ('LEGACY', 'HYBRID', 'V2')),
    -- NARROWING: how many tools were effective, and which of them were kept (in HYBRID: would have been).
    ADD COLUMN effective_count integer,
    ADD COLUMN kept_tool_ids text[],
    ADD CONSTRAINT searches_narrowing_ck CHECK ((kind = 'NARROWING') = (effective_count IS NOT NULL) AND (kind = 'NARROWING') = (kept_tool_ids IS NOT NULL)),
    ADD CONSTRAINT searches_message_ck CHECK (kind = 'SEARCH' OR cardinality(features) = 0 AND query IS NULL);
COMMENT ON TABLE searches IS 'What was searched for and found, and what was kept of large sets; never changed, deleted when old.';

-- The chat's turn and the user's routing mode when the call was allowed. Null: from before they were kept.
ALTER TABLE call_outcomes
    ADD COLUMN turn integer,
    ADD COLUMN routing_mode text CONSTRAINT call_outcomes_routing_mode_ck CHECK (routing_mode IN ('LEGACY', 'HYBRID', 'V2'));

-- +goose Down
ALTER TABLE call_outcomes DROP COLUMN turn, DROP COLUMN routing_mode;
DELETE FROM searches WHERE kind = 'NARROWING';
ALTER TABLE searches DROP COLUMN kind, DROP COLUMN routing_mode, DROP COLUMN effective_count, DROP COLUMN kept_tool_ids;
DELETE FROM changes WHERE kind = 'routing_mode';
ALTER TABLE changes DROP CONSTRAINT changes_kind_ck, ADD CONSTRAINT changes_kind_ck CHECK (kind IN ('tool_type', 'tool',
    'mcp_server', 'device_type', 'group', 'avatar', 'default_avatar', 'user', 'chat', 'approval')) NOT VALID;
DROP TABLE routing_modes;
