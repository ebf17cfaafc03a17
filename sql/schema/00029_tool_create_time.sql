-- +goose Up

-- Since when a tool is there: for past requests from before it could not be chosen. By the database's clock, one time for all
-- that one transaction writes; no change moves it. Null: it was there before this was noted.
ALTER TABLE tools ADD COLUMN create_time timestamptz;
ALTER TABLE tools ALTER COLUMN create_time SET DEFAULT now();

-- +goose Down
ALTER TABLE tools DROP COLUMN create_time;
