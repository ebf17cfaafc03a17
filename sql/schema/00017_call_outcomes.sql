-- +goose Up

-- How calls went: history, which names chats, tools and users without foreign keys. Whoever learns from it reads it by
-- time, or what a chat did with a tool.
CREATE TABLE call_outcomes (
    call_id text COLLATE "C" CONSTRAINT call_outcomes_pk PRIMARY KEY
        CONSTRAINT call_outcomes_call_id_ck CHECK (is_identifier(call_id)),
    chat_id text COLLATE "C" NOT NULL CONSTRAINT call_outcomes_chat_id_ck CHECK (is_identifier(chat_id)),
    user_id text COLLATE "C" NOT NULL CONSTRAINT call_outcomes_user_id_ck CHECK (is_identifier(user_id)),
    tool_id text COLLATE "C" NOT NULL CONSTRAINT call_outcomes_tool_id_ck CHECK (is_identifier(tool_id)),
    function text COLLATE "C" NOT NULL,
    outcome text NOT NULL CONSTRAINT call_outcomes_outcome_ck
        CHECK (outcome IN ('SUCCESS', 'ERROR', 'TIMEOUT', 'UNREACHABLE', 'CANCELLED', 'BAD_ARGUMENTS')),
    latency_ms bigint NOT NULL CONSTRAINT call_outcomes_latency_ms_ck CHECK (latency_ms >= 0),
    tokens bigint NOT NULL CONSTRAINT call_outcomes_tokens_ck CHECK (tokens >= 0),
    -- When it was reported, by the server's clock.
    report_time timestamptz NOT NULL
);
CREATE INDEX call_outcomes_report_time_ix ON call_outcomes (report_time);
CREATE INDEX call_outcomes_chat_id_ix ON call_outcomes (chat_id, tool_id, report_time);
COMMENT ON TABLE call_outcomes IS 'How calls of tools went; never changed, deleted when old.';

-- +goose StatementBegin
CREATE FUNCTION refuse_change_of_call_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: outcomes are never changed', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER never_changed BEFORE UPDATE ON call_outcomes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_call_outcomes();
ALTER TABLE call_outcomes ENABLE ALWAYS TRIGGER never_changed;

-- +goose Down
DROP TABLE call_outcomes;
DROP FUNCTION refuse_change_of_call_outcomes;
