-- +goose Up

-- Chats are spread by hash of chat_id, all their tables alike, so that a distributed PostgreSQL can place
-- them by the same key. The logs name tools and avatars without foreign keys: they are history, and keep
-- what they say when the catalogue moves on.

-- +goose StatementBegin
CREATE FUNCTION refuse_change_of_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: chat logs are append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

CREATE TABLE chats (
    chat_id text COLLATE "C" CONSTRAINT chats_pk PRIMARY KEY
        CONSTRAINT chats_chat_id_ck CHECK (is_identifier(chat_id)),
    user_id text COLLATE "C" NOT NULL CONSTRAINT chats_user_id_fk REFERENCES users,
    turn integer NOT NULL DEFAULT 0 CONSTRAINT chats_turn_ck CHECK (turn >= 0),
    -- How many entries both logs have together: the last sequence number.
    entry_count integer NOT NULL DEFAULT 0 CONSTRAINT chats_entry_count_ck CHECK (entry_count >= 0),
    -- The logs, folded: what enable.State holds. Reading a chat costs the same however long its log is.
    folded jsonb NOT NULL DEFAULT '{}',
    create_time timestamptz NOT NULL,
    end_time timestamptz
) PARTITION BY HASH (chat_id);
CREATE INDEX chats_user_id_ix ON chats (user_id);
COMMENT ON TABLE chats IS 'Conversations, with their logs folded.';

-- What each request to write to a chat did; also the guard against doing it twice.
CREATE TABLE chat_requests (
    chat_id text COLLATE "C" NOT NULL CONSTRAINT chat_requests_chat_id_fk REFERENCES chats,
    request_id text COLLATE "C" NOT NULL CONSTRAINT chat_requests_request_id_ck CHECK (is_identifier(request_id)),
    -- SHA-256 of what was asked, so that another request under the same id is noticed.
    fingerprint bytea NOT NULL,
    first_sequence_number integer NOT NULL,
    last_sequence_number integer NOT NULL,
    revision text NOT NULL,
    create_time timestamptz NOT NULL,
    CONSTRAINT chat_requests_pk PRIMARY KEY (chat_id, request_id)
) PARTITION BY HASH (chat_id);
COMMENT ON TABLE chat_requests IS 'Requests that wrote to a chat; append-only.';

CREATE TABLE chat_tool_log (
    chat_id text COLLATE "C" NOT NULL CONSTRAINT chat_tool_log_chat_id_fk REFERENCES chats,
    sequence_number integer NOT NULL CONSTRAINT chat_tool_log_sequence_number_ck CHECK (sequence_number >= 1),
    tool_id text COLLATE "C" NOT NULL CONSTRAINT chat_tool_log_tool_id_ck CHECK (is_identifier(tool_id)),
    action text NOT NULL CONSTRAINT chat_tool_log_action_ck CHECK (action IN ('ENABLE', 'DISABLE')),
    ttl_turns integer CONSTRAINT chat_tool_log_ttl_turns_ck CHECK (ttl_turns IS NULL OR (ttl_turns >= 1 AND action = 'ENABLE')),
    turn integer NOT NULL CONSTRAINT chat_tool_log_turn_ck CHECK (turn >= 0),
    request_id text COLLATE "C" NOT NULL,
    create_time timestamptz NOT NULL,
    CONSTRAINT chat_tool_log_pk PRIMARY KEY (chat_id, sequence_number)
) PARTITION BY HASH (chat_id);
COMMENT ON TABLE chat_tool_log IS 'What a chat turned on and off; append-only, numbered together with chat_avatar_log.';

CREATE TABLE chat_avatar_log (
    chat_id text COLLATE "C" NOT NULL CONSTRAINT chat_avatar_log_chat_id_fk REFERENCES chats,
    sequence_number integer NOT NULL CONSTRAINT chat_avatar_log_sequence_number_ck CHECK (sequence_number >= 1),
    avatar_id text COLLATE "C" NOT NULL CONSTRAINT chat_avatar_log_avatar_id_ck CHECK (is_identifier(avatar_id)),
    action text NOT NULL CONSTRAINT chat_avatar_log_action_ck CHECK (action IN ('ENABLE', 'DISABLE')),
    turn integer NOT NULL CONSTRAINT chat_avatar_log_turn_ck CHECK (turn >= 0),
    request_id text COLLATE "C" NOT NULL,
    create_time timestamptz NOT NULL,
    CONSTRAINT chat_avatar_log_pk PRIMARY KEY (chat_id, sequence_number)
) PARTITION BY HASH (chat_id);
COMMENT ON TABLE chat_avatar_log IS 'Which avatars a chat turned on and off; append-only.';

-- Statement triggers fire for the table that the statement names, so every partition has its own.
-- +goose StatementBegin
DO $$
DECLARE
    tbl text;
    part text;
BEGIN
    FOREACH tbl IN ARRAY ARRAY['chats', 'chat_requests', 'chat_tool_log', 'chat_avatar_log'] LOOP
        FOR i IN 0..7 LOOP
            part := format('%s_%s', tbl, i);
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 8, REMAINDER %s)', part, tbl, i);
            IF tbl <> 'chats' THEN
                EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I '
                    'FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_log()', part);
            ELSE
                -- Room for the fold to grow on the same page.
                EXECUTE format('ALTER TABLE %I SET (fillfactor = 80)', part);
            END IF;
        END LOOP;
        IF tbl <> 'chats' THEN
            EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I '
                'FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_log()', tbl);
        END IF;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE chat_avatar_log, chat_tool_log, chat_requests, chats;
DROP FUNCTION refuse_change_of_log;
