-- +goose Up

-- No foreign keys: a counter may be written a moment after its rule or its user was deleted, and is pruned like all
-- others. Rows are updated in place where pages have room, so nothing but the primary key is indexed.
CREATE TABLE quota_counters (
    subject text COLLATE "C" NOT NULL,
    quota_id text COLLATE "C" NOT NULL,
    shape text COLLATE "C" NOT NULL,
    version bigint NOT NULL CONSTRAINT quota_counters_version_ck CHECK (version > 0),
    content text NOT NULL,
    expire_time timestamptz NOT NULL,
    CONSTRAINT quota_counters_pk PRIMARY KEY (subject, quota_id, shape)
) WITH (fillfactor = 70);
COMMENT ON TABLE quota_counters IS 'Counters of rules over an hour or more, as they last stood in Redis, which may lose them.';
COMMENT ON COLUMN quota_counters.subject IS 'u:<user>, or s:<rule> where all users count together.';
COMMENT ON COLUMN quota_counters.shape IS 'What is counted, and over what time.';
COMMENT ON COLUMN quota_counters.version IS 'Grows with every change.';
COMMENT ON COLUMN quota_counters.content IS 'Fields of the hash in Redis and their values, without what is held.';

-- +goose Down
DROP TABLE quota_counters;
