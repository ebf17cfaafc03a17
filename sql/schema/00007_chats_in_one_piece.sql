-- +goose Up

-- A query that is prepared once locks every partition of a table each time it runs, whichever one it needs.
-- For the one row of a chat that costs more than all the rest of the query. The logs stay partitioned: they are
-- what grows.
ALTER TABLE chat_requests DROP CONSTRAINT chat_requests_chat_id_fk;
ALTER TABLE chat_tool_log DROP CONSTRAINT chat_tool_log_chat_id_fk;
ALTER TABLE chat_avatar_log DROP CONSTRAINT chat_avatar_log_chat_id_fk;

CREATE TABLE chats_in_one_piece (
    chat_id text COLLATE "C" NOT NULL CONSTRAINT chats_chat_id_ck CHECK (is_identifier(chat_id)),
    user_id text COLLATE "C" NOT NULL,
    -- The highest turn known; stored only when something depends on it.
    turn integer NOT NULL DEFAULT 0 CONSTRAINT chats_turn_ck CHECK (turn >= 0),
    -- Entries in both logs together: the last sequence number.
    entry_count integer NOT NULL DEFAULT 0 CONSTRAINT chats_entry_count_ck CHECK (entry_count >= 0),
    -- Both logs, folded.
    folded jsonb NOT NULL DEFAULT '{}',
    create_time timestamptz NOT NULL,
    end_time timestamptz
) WITH (fillfactor = 80); -- rows change in place
INSERT INTO chats_in_one_piece (chat_id, user_id, turn, entry_count, folded, create_time, end_time)
SELECT chat_id, user_id, turn, entry_count, folded, create_time, end_time FROM chats;
DROP TABLE chats;
ALTER TABLE chats_in_one_piece RENAME TO chats;
ALTER TABLE chats ADD CONSTRAINT chats_pk PRIMARY KEY (chat_id),
    ADD CONSTRAINT chats_user_id_fk FOREIGN KEY (user_id) REFERENCES users;
CREATE INDEX chats_user_id_ix ON chats (user_id);
COMMENT ON TABLE chats IS 'Conversations, with their logs folded.';

ALTER TABLE chat_requests ADD CONSTRAINT chat_requests_chat_id_fk FOREIGN KEY (chat_id) REFERENCES chats;
ALTER TABLE chat_tool_log ADD CONSTRAINT chat_tool_log_chat_id_fk FOREIGN KEY (chat_id) REFERENCES chats;
ALTER TABLE chat_avatar_log ADD CONSTRAINT chat_avatar_log_chat_id_fk FOREIGN KEY (chat_id) REFERENCES chats;

-- +goose Down

-- A chat's row is the same either way.
SELECT 1;
