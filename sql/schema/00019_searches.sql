-- +goose Up

-- What was searched for, without its words unless the operator keeps them: history, which names chats, users and tools
-- without foreign keys. It is joined with calls by chat and time.
CREATE TABLE searches (
    search_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT searches_pk PRIMARY KEY,
    chat_id text COLLATE "C" NOT NULL CONSTRAINT searches_chat_id_ck CHECK (is_identifier(chat_id)),
    user_id text COLLATE "C" NOT NULL CONSTRAINT searches_user_id_ck CHECK (is_identifier(user_id)),
    -- The user's groups then.
    group_ids text[] NOT NULL,
    -- Hashes of its different words, sorted.
    features bigint[] NOT NULL,
    -- Null unless queries are kept.
    query text,
    -- What was found, best first. None: nothing fitted.
    found_tool_ids text[] NOT NULL,
    -- By the server's clock.
    create_time timestamptz NOT NULL
);
CREATE INDEX searches_chat_id_ix ON searches (chat_id, create_time);
CREATE INDEX searches_create_time_ix ON searches (create_time);
COMMENT ON TABLE searches IS 'What was searched for and found; never changed, deleted when old.';

-- Calls that went well and the searches that led to them, joined once, when the outcome is written. What is learned
-- depends on these rows only.
CREATE TABLE search_uses (
    call_id text COLLATE "C" NOT NULL CONSTRAINT search_uses_pk PRIMARY KEY,
    search_id bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    group_ids text[] NOT NULL,
    tool_id text COLLATE "C" NOT NULL,
    -- The tool was private then: nobody but its owner learns from it.
    private boolean NOT NULL,
    features bigint[] NOT NULL,
    report_time timestamptz NOT NULL,
    -- By the database's clock: who follows reads from a little before what it read last.
    create_time timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX search_uses_report_time_ix ON search_uses (report_time);
CREATE INDEX search_uses_create_time_ix ON search_uses (create_time);
COMMENT ON TABLE search_uses IS 'Calls that went well and the searches that led to them; never changed, deleted when old.';

-- +goose Down
DROP TABLE search_uses;
DROP TABLE searches;
