-- +goose NO TRANSACTION
-- +goose Up

-- Indexes of large tables are made beside those who write, which no transaction may. So each statement may be repeated
-- after one that failed.

-- Logs stay append-only, but for one thing: a whole chat, an approval with its decisions, or a reset may go, when it is
-- too old or its user is erased. Who deletes says so for the transaction (toolgrant.delete = whole). UPDATE and TRUNCATE
-- are refused as ever, and so is whatever touches the audit log.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_change_of_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('toolgrant.delete', true) = 'whole' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% of % is refused: chat logs are append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('toolgrant.delete', true) = 'whole' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% of % is refused: it is append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_change_of_approvals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('toolgrant.delete', true) = 'whole' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% of % is refused: approvals are append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

-- Entries of a log may go with their chat only: no part of a log is ever missing. This is looked at when the
-- transaction commits.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_half_a_chat() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM chats WHERE chat_id = OLD.chat_id) THEN
        RAISE EXCEPTION 'DELETE of % is refused: chat logs are deleted with their chat or not at all', TG_TABLE_NAME
            USING ERRCODE = 'TG001';
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
DROP TRIGGER IF EXISTS whole_chat ON chat_requests;
CREATE CONSTRAINT TRIGGER whole_chat AFTER DELETE ON chat_requests
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_half_a_chat();
DROP TRIGGER IF EXISTS whole_chat ON chat_tool_log;
CREATE CONSTRAINT TRIGGER whole_chat AFTER DELETE ON chat_tool_log
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_half_a_chat();
DROP TRIGGER IF EXISTS whole_chat ON chat_avatar_log;
CREATE CONSTRAINT TRIGGER whole_chat AFTER DELETE ON chat_avatar_log
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_half_a_chat();

DROP INDEX CONCURRENTLY IF EXISTS chats_end_time_ix;
CREATE INDEX CONCURRENTLY chats_end_time_ix ON chats (end_time) WHERE end_time IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS call_outcomes_user_id_ix;
CREATE INDEX CONCURRENTLY call_outcomes_user_id_ix ON call_outcomes (user_id);
DROP INDEX CONCURRENTLY IF EXISTS searches_user_id_ix;
CREATE INDEX CONCURRENTLY searches_user_id_ix ON searches (user_id);
DROP INDEX CONCURRENTLY IF EXISTS search_uses_user_id_ix;
CREATE INDEX CONCURRENTLY search_uses_user_id_ix ON search_uses (user_id);

-- What servers had in memory may be written just after a user was erased: it is looked for once more, and then this is
-- forgotten, too.
CREATE TABLE IF NOT EXISTS erasures (
    user_id text COLLATE "C" CONSTRAINT erasures_pk PRIMARY KEY CONSTRAINT erasures_user_id_ck CHECK (is_identifier(user_id)),
    -- What was used of quotas by day is kept.
    keep_history boolean NOT NULL,
    erase_time timestamptz NOT NULL DEFAULT statement_timestamp()
);
COMMENT ON TABLE erasures IS 'Users who were erased a short time ago.';

-- +goose Down
DROP TABLE erasures;
DROP INDEX search_uses_user_id_ix;
DROP INDEX searches_user_id_ix;
DROP INDEX call_outcomes_user_id_ix;
DROP INDEX chats_end_time_ix;
DROP TRIGGER whole_chat ON chat_avatar_log;
DROP TRIGGER whole_chat ON chat_tool_log;
DROP TRIGGER whole_chat ON chat_requests;
DROP FUNCTION refuse_half_a_chat;
