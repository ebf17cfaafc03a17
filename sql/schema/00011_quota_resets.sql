-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: it is append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'TG001';
END
$$;
-- +goose StatementEnd

-- Written before the counters forget anything, so that no reset goes unseen. It outlives users and quotas, hence no
-- foreign keys to them.
CREATE TABLE quota_resets (
    request_id text COLLATE "C" CONSTRAINT quota_resets_pk PRIMARY KEY
        CONSTRAINT quota_resets_request_id_ck CHECK (is_identifier(request_id)),
    user_id text COLLATE "C" NOT NULL CONSTRAINT quota_resets_user_id_ck CHECK (is_identifier(user_id)),
    quota_id text COLLATE "C" NOT NULL CONSTRAINT quota_resets_quota_id_ck CHECK (is_identifier(quota_id)),
    reason text NOT NULL CONSTRAINT quota_resets_reason_ck CHECK (octet_length(reason) <= 1024),
    -- What the counters said just before.
    used bigint NOT NULL,
    create_time timestamptz NOT NULL
);
CREATE INDEX quota_resets_user_id_ix ON quota_resets (user_id, create_time);
COMMENT ON TABLE quota_resets IS 'Requests to forget what a user has used of a quota, and why; append-only.';

-- Written afterwards: a request that is not here may have been carried out or not, and is carried out when it is repeated.
CREATE TABLE quota_resets_done (
    request_id text COLLATE "C" CONSTRAINT quota_resets_done_pk PRIMARY KEY
        CONSTRAINT quota_resets_done_request_id_fk REFERENCES quota_resets,
    create_time timestamptz NOT NULL
);
COMMENT ON TABLE quota_resets_done IS 'Resets that were carried out; append-only.';

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON quota_resets
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON quota_resets_done
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- +goose Down
DROP TABLE quota_resets_done, quota_resets;
DROP FUNCTION refuse_change;
