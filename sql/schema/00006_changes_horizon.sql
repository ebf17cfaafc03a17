-- +goose Up

-- Changes are kept for a while only. Who follows them must be able to tell that some may be gone.
CREATE TABLE changes_horizon (
    singleton boolean PRIMARY KEY DEFAULT true CONSTRAINT changes_horizon_singleton_ck CHECK (singleton),
    xid xid8 NOT NULL
);
COMMENT ON TABLE changes_horizon IS 'The latest transaction of which changes were deleted.';
INSERT INTO changes_horizon (xid) VALUES ('0');

-- +goose Down

DROP TABLE changes_horizon;
