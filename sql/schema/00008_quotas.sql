-- +goose Up

-- A window is given by one of fixed_ms, calendar_period and refill_per_second. A token bucket's burst is its limit.
CREATE TABLE quotas (
    quota_id text COLLATE "C" CONSTRAINT quotas_pk PRIMARY KEY
        CONSTRAINT quotas_quota_id_ck CHECK (is_identifier(quota_id)),
    tool_id text COLLATE "C" CONSTRAINT quotas_tool_id_fk REFERENCES tools ON DELETE CASCADE,
    tool_type_id text COLLATE "C" CONSTRAINT quotas_tool_type_id_fk REFERENCES tool_types ON DELETE CASCADE,
    scope text NOT NULL CONSTRAINT quotas_scope_ck CHECK (scope IN ('USER', 'NODE', 'SYSTEM')),
    unit text NOT NULL CONSTRAINT quotas_unit_ck CHECK (unit IN ('CALLS', 'TOKENS', 'CONCURRENT_CALLS')),
    quota_limit bigint NOT NULL CONSTRAINT quotas_quota_limit_ck CHECK (quota_limit BETWEEN 0 AND 1000000000000),
    fixed_ms bigint CONSTRAINT quotas_fixed_ms_ck CHECK (fixed_ms BETWEEN 1000 AND 31622400000),
    calendar_period text CONSTRAINT quotas_calendar_period_ck CHECK (calendar_period IN ('DAY', 'WEEK', 'MONTH')),
    calendar_zone text, -- empty: UTC
    refill_per_second double precision
        CONSTRAINT quotas_refill_per_second_ck CHECK (refill_per_second > 0 AND refill_per_second <= 1000000),
    on_outage text NOT NULL CONSTRAINT quotas_on_outage_ck CHECK (on_outage IN ('DENY', 'ALLOW', 'LOCAL_SHARE')),
    on_abandoned text NOT NULL CONSTRAINT quotas_on_abandoned_ck CHECK (on_abandoned IN ('GIVE_BACK', 'CHARGE')),
    shadow boolean NOT NULL,
    warn_at double precision NOT NULL CONSTRAINT quotas_warn_at_ck CHECK (warn_at > 0 AND warn_at <= 1),
    CONSTRAINT quotas_owner_ck CHECK (num_nonnulls(tool_id, tool_type_id) = 1),
    CONSTRAINT quotas_window_ck CHECK (num_nonnulls(fixed_ms, calendar_period, refill_per_second) =
        CASE unit WHEN 'CONCURRENT_CALLS' THEN 0 ELSE 1 END),
    CONSTRAINT quotas_calendar_ck CHECK ((calendar_period IS NULL) = (calendar_zone IS NULL)),
    CONSTRAINT quotas_burst_ck CHECK (refill_per_second IS NULL OR quota_limit > 0)
);
CREATE INDEX quotas_tool_id_ix ON quotas (tool_id) WHERE tool_id IS NOT NULL;
CREATE INDEX quotas_tool_type_id_ix ON quotas (tool_type_id) WHERE tool_type_id IS NOT NULL;
COMMENT ON TABLE quotas IS 'Rules about how often tools, or the tools of a type, may be called.';

CREATE TABLE quota_overrides (
    user_id text COLLATE "C" NOT NULL CONSTRAINT quota_overrides_user_id_fk REFERENCES users ON DELETE CASCADE,
    quota_id text COLLATE "C" NOT NULL CONSTRAINT quota_overrides_quota_id_fk REFERENCES quotas ON DELETE CASCADE,
    quota_limit bigint NOT NULL
        CONSTRAINT quota_overrides_quota_limit_ck CHECK (quota_limit BETWEEN 0 AND 1000000000000),
    expire_time timestamptz,
    CONSTRAINT quota_overrides_pk PRIMARY KEY (user_id, quota_id)
);
CREATE INDEX quota_overrides_quota_id_ix ON quota_overrides (quota_id);
COMMENT ON TABLE quota_overrides IS 'Limits of single users, until expire_time; without one, for good.';

-- +goose Down
DROP TABLE quota_overrides, quotas;
