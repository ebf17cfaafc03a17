-- +goose Up

-- Vectors that a model made of texts of tools, so that a restart need not ask for them again. A vector is its numbers,
-- four bytes each, float32 of IEEE 754, little endian: they are compared in the servers' memory, all of them, so nothing
-- here has to understand them, and no extension has to be installed, which a plain PostgreSQL lacks. A fingerprint is the
-- SHA-256 of what was embedded and by which model, so equal ones mean the same vector. The endpoint may answer
-- in another number of dimensions than before: these stand beside the old ones, until nobody needs those.

-- Of shared tools. Who made one does not matter, nor which tools have the text.
CREATE TABLE shared_vectors (
    fingerprint bytea NOT NULL CONSTRAINT shared_vectors_fingerprint_ck CHECK (octet_length(fingerprint) = 32),
    dimensions integer NOT NULL CONSTRAINT shared_vectors_dimensions_ck CHECK (dimensions BETWEEN 1 AND 8192),
    vector bytea NOT NULL CONSTRAINT shared_vectors_vector_ck CHECK (octet_length(vector) = 4 * dimensions),
    -- The model's name, for people.
    model text NOT NULL CONSTRAINT shared_vectors_model_ck CHECK (octet_length(model) <= 256),
    create_time timestamptz NOT NULL DEFAULT statement_timestamp(),
    -- When a server last said that a tool has the text; at most once a day.
    need_time timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT shared_vectors_pk PRIMARY KEY (fingerprint, dimensions)
);
ALTER TABLE shared_vectors ALTER COLUMN vector SET STORAGE EXTERNAL; -- such numbers don't get smaller
CREATE INDEX shared_vectors_need_time_ix ON shared_vectors (need_time);
COMMENT ON TABLE shared_vectors IS 'What a model says that texts of shared tools mean; deleted when not needed for long.';

-- Of users' private tools, each its owner's, with whom it goes, and with the tool. Both are in the fingerprint, too, so
-- nothing here tells that two users have the same text.
CREATE TABLE private_vectors (
    owner_user_id text COLLATE "C" NOT NULL CONSTRAINT private_vectors_owner_user_id_fk REFERENCES users ON DELETE CASCADE,
    tool_id text COLLATE "C" NOT NULL CONSTRAINT private_vectors_tool_id_fk REFERENCES tools ON DELETE CASCADE,
    fingerprint bytea NOT NULL CONSTRAINT private_vectors_fingerprint_ck CHECK (octet_length(fingerprint) = 32),
    dimensions integer NOT NULL CONSTRAINT private_vectors_dimensions_ck CHECK (dimensions BETWEEN 1 AND 8192),
    vector bytea NOT NULL CONSTRAINT private_vectors_vector_ck CHECK (octet_length(vector) = 4 * dimensions),
    model text NOT NULL CONSTRAINT private_vectors_model_ck CHECK (octet_length(model) <= 256),
    create_time timestamptz NOT NULL DEFAULT statement_timestamp(),
    need_time timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT private_vectors_pk PRIMARY KEY (owner_user_id, tool_id, fingerprint, dimensions)
);
ALTER TABLE private_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;
CREATE INDEX private_vectors_tool_id_ix ON private_vectors (tool_id);
CREATE INDEX private_vectors_need_time_ix ON private_vectors (need_time);
COMMENT ON TABLE private_vectors IS 'What a model says that texts of private tools mean, for their owners only.';

-- Who asks for which vector now: another server may when the claim is over, so one that died holds nobody up for long.
CREATE TABLE vector_claims (
    fingerprint bytea NOT NULL CONSTRAINT vector_claims_pk PRIMARY KEY
        CONSTRAINT vector_claims_fingerprint_ck CHECK (octet_length(fingerprint) = 32),
    -- A server, by a name that it made up when it started.
    claimant text NOT NULL CONSTRAINT vector_claims_claimant_ck CHECK (octet_length(claimant) BETWEEN 1 AND 64),
    -- By the database's clock.
    expire_time timestamptz NOT NULL
);
COMMENT ON TABLE vector_claims IS 'Which vectors servers ask a model for; gone when they have them.';

-- +goose Down
DROP TABLE vector_claims, private_vectors, shared_vectors;
