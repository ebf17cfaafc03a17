-- +goose Up

-- What was used, for billing: it stays when users and tools are deleted, hence no foreign keys.
CREATE TABLE quota_history (
    day date NOT NULL, -- in UTC
    user_id text COLLATE "C" NOT NULL CONSTRAINT quota_history_user_id_ck CHECK (is_identifier(user_id)),
    tool_id text COLLATE "C" NOT NULL CONSTRAINT quota_history_tool_id_ck CHECK (is_identifier(tool_id)),
    calls bigint NOT NULL CONSTRAINT quota_history_calls_ck CHECK (calls >= 0),
    tokens bigint NOT NULL CONSTRAINT quota_history_tokens_ck CHECK (tokens >= 0),
    CONSTRAINT quota_history_pk PRIMARY KEY (day, user_id, tool_id)
) WITH (fillfactor = 80); -- rows of today are updated again and again, on their page if there is room
CREATE INDEX quota_history_user_id_ix ON quota_history (user_id, day, tool_id);
CREATE INDEX quota_history_tool_id_ix ON quota_history (tool_id, day, user_id);
COMMENT ON TABLE quota_history IS 'Calls and tokens that were admitted and not given back, by day, user and tool.';

-- A node adds to the history in batches, and repeats one of which it does not know whether it was added.
CREATE TABLE quota_history_nodes (
    node_id text COLLATE "C" CONSTRAINT quota_history_nodes_pk PRIMARY KEY,
    -- The number of its last batch; the transaction that adds the batch raises it.
    batch bigint NOT NULL CONSTRAINT quota_history_nodes_batch_ck CHECK (batch >= 1),
    update_time timestamptz NOT NULL
);
CREATE INDEX quota_history_nodes_update_time_ix ON quota_history_nodes (update_time);
COMMENT ON TABLE quota_history_nodes IS 'How far each node''s batches have been added to the history.';

-- +goose Down
DROP TABLE quota_history_nodes, quota_history;
