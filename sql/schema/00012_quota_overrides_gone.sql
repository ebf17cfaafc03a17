-- +goose Up

-- A rule that is deleted takes the overrides of its limit with it. Whoever remembers them must hear of it: a rule of
-- the same id may come later.
-- +goose StatementBegin
CREATE FUNCTION record_overrides_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (kind, object_id) SELECT DISTINCT 'user', user_id FROM gone;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER quota_overrides_gone AFTER DELETE ON quota_overrides REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION record_overrides_gone();

-- +goose Down
DROP TRIGGER quota_overrides_gone ON quota_overrides;
DROP FUNCTION record_overrides_gone;
