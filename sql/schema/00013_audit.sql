-- +goose Up

-- Entries outlive what they tell of: they name objects without foreign keys, and their actions and kinds are not
-- enumerated here. Whoever reads pages through them by time, newest first, and mostly with one filter: every
-- filter has an index in that order.
CREATE TABLE audit_entries (
    sequence_number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    -- Not now(), the beginning of the transaction: a writer that waited for another would seem to be the earlier.
    create_time timestamptz NOT NULL DEFAULT statement_timestamp(),
    actor text COLLATE "C" NOT NULL CONSTRAINT audit_entries_actor_ck CHECK (actor <> ''),
    action text COLLATE "C" NOT NULL CONSTRAINT audit_entries_action_ck CHECK (action <> ''),
    kind text COLLATE "C" NOT NULL CONSTRAINT audit_entries_kind_ck CHECK (kind <> ''),
    object_id text COLLATE "C" NOT NULL CONSTRAINT audit_entries_object_id_ck CHECK (object_id <> ''),
    user_id text COLLATE "C",
    changed_fields text[] NOT NULL,
    -- json and not jsonb: kept as it was written.
    before json,
    after json,
    reason text NOT NULL,
    request_id text NOT NULL,
    CONSTRAINT audit_entries_pk PRIMARY KEY (create_time, sequence_number)
);
CREATE INDEX audit_entries_action_ix ON audit_entries (action, create_time, sequence_number);
CREATE INDEX audit_entries_kind_ix ON audit_entries (kind, create_time, sequence_number);
CREATE INDEX audit_entries_object_id_ix ON audit_entries (object_id, create_time, sequence_number);
CREATE INDEX audit_entries_actor_ix ON audit_entries (actor, create_time, sequence_number);
CREATE INDEX audit_entries_user_id_ix ON audit_entries (user_id, create_time, sequence_number) WHERE user_id IS NOT NULL;
COMMENT ON TABLE audit_entries IS 'Who administered what, and why; append-only.';

-- +goose StatementBegin
CREATE FUNCTION refuse_change_of_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: the audit log is append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit_log();
-- Also in sessions that apply changes of another database.
ALTER TABLE audit_entries ENABLE ALWAYS TRIGGER append_only;

-- +goose Down
DROP TABLE audit_entries;
DROP FUNCTION refuse_change_of_audit_log;
