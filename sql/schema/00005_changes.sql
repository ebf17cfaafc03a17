-- +goose Up

-- Every write appends what it changed, in its own transaction. change_id only tells rows apart: sequence
-- numbers are given before the commit and so commit out of order. A reader that must not miss a change
-- compares xid with a snapshot (pg_current_snapshot): a transaction is visible in it or will be in a later one.
CREATE TABLE changes (
    change_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT changes_pk PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- What kind of object: a manifest's section in the singular, or chat.
    kind text NOT NULL CONSTRAINT changes_kind_ck CHECK (kind IN ('tool_type', 'tool', 'mcp_server',
        'device_type', 'group', 'avatar', 'default_avatar', 'user', 'chat')),
    object_id text COLLATE "C" NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX changes_xid_ix ON changes (xid);
COMMENT ON TABLE changes IS 'What every write changed, for readers that follow.';

-- +goose Down
DROP TABLE changes;
