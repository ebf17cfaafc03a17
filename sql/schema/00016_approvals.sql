-- +goose Up

-- Who was asked what, and what became of it: history, which names chats, tools and users without foreign keys. How an
-- approval stands follows from these rows and the time.
CREATE TABLE approval_requests (
    approval_id text COLLATE "C" CONSTRAINT approval_requests_pk PRIMARY KEY
        CONSTRAINT approval_requests_approval_id_ck CHECK (is_identifier(approval_id)),
    call_id text COLLATE "C" NOT NULL CONSTRAINT approval_requests_call_id_uq UNIQUE
        CONSTRAINT approval_requests_call_id_ck CHECK (is_identifier(call_id)),
    chat_id text COLLATE "C" NOT NULL CONSTRAINT approval_requests_chat_id_ck CHECK (is_identifier(chat_id)),
    user_id text COLLATE "C" NOT NULL CONSTRAINT approval_requests_user_id_ck CHECK (is_identifier(user_id)),
    tool_id text COLLATE "C" NOT NULL CONSTRAINT approval_requests_tool_id_ck CHECK (is_identifier(tool_id)),
    function text COLLATE "C" NOT NULL CONSTRAINT approval_requests_function_ck CHECK (function <> ''),
    -- As JSON, cut to be shown, so that it need not be valid; and SHA-256 of the whole. Empty: they were not sent.
    arguments text NOT NULL,
    arguments_digest bytea NOT NULL,
    create_time timestamptz NOT NULL,
    -- Until when it waits.
    expire_time timestamptz NOT NULL,
    CONSTRAINT approval_requests_expire_time_ck CHECK (expire_time > create_time)
);
CREATE INDEX approval_requests_create_time_ix ON approval_requests (create_time, approval_id);
CREATE INDEX approval_requests_user_id_ix ON approval_requests (user_id, create_time, approval_id);
CREATE INDEX approval_requests_chat_id_ix ON approval_requests (chat_id, create_time, approval_id);
CREATE INDEX approval_requests_function_ix ON approval_requests (user_id, tool_id, function);
CREATE INDEX approval_requests_expire_time_ix ON approval_requests (expire_time);
COMMENT ON TABLE approval_requests IS 'Calls that a person was asked to approve; append-only.';

-- Each step is taken once at most.
CREATE TABLE approval_decisions (
    approval_id text COLLATE "C" NOT NULL CONSTRAINT approval_decisions_approval_id_fk REFERENCES approval_requests,
    step text NOT NULL CONSTRAINT approval_decisions_step_ck CHECK (step IN ('GRANT', 'DENY', 'USE', 'REVOKE')),
    scope text CONSTRAINT approval_decisions_scope_ck CHECK (scope IN ('ONCE', 'CHAT', 'UNTIL')),
    -- Until when a grant holds; null: as long as its scope.
    expire_time timestamptz,
    actor text COLLATE "C" NOT NULL CONSTRAINT approval_decisions_actor_ck CHECK (actor <> ''),
    reason text NOT NULL,
    create_time timestamptz NOT NULL,
    CONSTRAINT approval_decisions_pk PRIMARY KEY (approval_id, step),
    CONSTRAINT approval_decisions_grant_ck CHECK ((step = 'GRANT') = (scope IS NOT NULL)),
    CONSTRAINT approval_decisions_expire_time_ck CHECK (expire_time IS NULL OR step = 'GRANT'),
    CONSTRAINT approval_decisions_until_ck CHECK (scope = 'CHAT' OR expire_time IS NOT NULL OR step <> 'GRANT')
);
-- Granted or refused, not both.
CREATE UNIQUE INDEX approval_decisions_decided_uq ON approval_decisions (approval_id) WHERE step IN ('GRANT', 'DENY');
COMMENT ON TABLE approval_decisions IS 'What became of approvals: granted or refused, used, taken back; append-only.';

-- +goose StatementBegin
CREATE FUNCTION refuse_change_of_approvals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: approvals are append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON approval_requests
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_approvals();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON approval_decisions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_approvals();
-- Also in sessions that apply changes of another database.
ALTER TABLE approval_requests ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE approval_decisions ENABLE ALWAYS TRIGGER append_only;

-- An approval's object_id is its user's id, a comma, and its own: who follows one user's need not look at others'.
ALTER TABLE changes DROP CONSTRAINT changes_kind_ck, ADD CONSTRAINT changes_kind_ck CHECK (kind IN ('tool_type', 'tool',
    'mcp_server', 'device_type', 'group', 'avatar', 'default_avatar', 'user', 'chat', 'approval')) NOT VALID;

-- +goose Down
DELETE FROM changes WHERE kind = 'approval';
ALTER TABLE changes DROP CONSTRAINT changes_kind_ck, ADD CONSTRAINT changes_kind_ck CHECK (kind IN ('tool_type', 'tool',
    'mcp_server', 'device_type', 'group', 'avatar', 'default_avatar', 'user', 'chat'));
DROP TABLE approval_decisions, approval_requests;
DROP FUNCTION refuse_change_of_approvals;
