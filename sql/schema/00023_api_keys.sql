-- +goose Up

CREATE TABLE api_keys (
    key_id text COLLATE "C" CONSTRAINT api_keys_pk PRIMARY KEY
        CONSTRAINT api_keys_key_id_ck CHECK (is_identifier(key_id)),
    title text NOT NULL,
    role text NOT NULL CONSTRAINT api_keys_role_ck CHECK (role IN ('ADMIN', 'OPERATOR', 'CHAT_SERVER', 'FRONTEND', 'VIEWER')),
    -- A user's keys go with the user.
    user_id text COLLATE "C" CONSTRAINT api_keys_user_id_fk REFERENCES users ON DELETE CASCADE,
    create_time timestamptz NOT NULL,
    expire_time timestamptz,
    revoke_time timestamptz,
    CONSTRAINT api_keys_frontend_ck CHECK ((role = 'FRONTEND') = (user_id IS NOT NULL))
);
CREATE INDEX api_keys_user_id_ix ON api_keys (user_id) WHERE user_id IS NOT NULL;
COMMENT ON TABLE api_keys IS 'Who may call with an API key. Their secrets are not stored, only hashes.';

CREATE TABLE api_key_secrets (
    key_id text COLLATE "C" NOT NULL CONSTRAINT api_key_secrets_key_id_fk REFERENCES api_keys ON DELETE CASCADE,
    request_id text COLLATE "C" NOT NULL CONSTRAINT api_key_secrets_request_id_ck CHECK (is_identifier(request_id)),
    sha256 bytea NOT NULL CONSTRAINT api_key_secrets_sha256_uq UNIQUE
        CONSTRAINT api_key_secrets_sha256_ck CHECK (octet_length(sha256) = 32),
    create_time timestamptz NOT NULL,
    expire_time timestamptz,
    CONSTRAINT api_key_secrets_pk PRIMARY KEY (key_id, request_id)
);
COMMENT ON TABLE api_key_secrets IS 'Hashes of the secrets of API keys, by the request that made them.';

-- Apart from the keys, since nobody follows it.
CREATE TABLE api_key_uses (
    key_id text COLLATE "C" CONSTRAINT api_key_uses_pk PRIMARY KEY CONSTRAINT api_key_uses_key_id_fk REFERENCES api_keys ON DELETE CASCADE,
    use_time timestamptz NOT NULL
);
COMMENT ON TABLE api_key_uses IS 'When API keys were used last, to the minute.';

-- Kinds are not enumerated here any more: who follows changes ignores those that it does not know.
ALTER TABLE changes DROP CONSTRAINT changes_kind_ck, ADD CONSTRAINT changes_kind_ck CHECK (kind ~ '^[a-z][a-z_]{0,62}$') NOT VALID;

-- Whoever changes keys, a user's deletion too, tells those who follow.
-- +goose StatementBegin
CREATE FUNCTION record_change_of_api_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (kind, object_id) VALUES ('api_key', coalesce(NEW.key_id, OLD.key_id));
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON api_keys
    FOR EACH ROW EXECUTE FUNCTION record_change_of_api_key();
CREATE TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON api_key_secrets
    FOR EACH ROW EXECUTE FUNCTION record_change_of_api_key();

-- +goose Down
DROP TABLE api_key_uses, api_key_secrets, api_keys;
DROP FUNCTION record_change_of_api_key;
DELETE FROM changes WHERE kind = 'api_key';
ALTER TABLE changes DROP CONSTRAINT changes_kind_ck, ADD CONSTRAINT changes_kind_ck CHECK (kind IN ('tool_type', 'tool',
    'mcp_server', 'device_type', 'group', 'avatar', 'default_avatar', 'user', 'chat', 'approval')) NOT VALID;
