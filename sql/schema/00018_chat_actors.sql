-- +goose Up

-- Who asked for an entry: the model or a person. Entries from before, and those of which it was not told, have none.
ALTER TABLE chat_tool_log ADD COLUMN actor text
    CONSTRAINT chat_tool_log_actor_ck CHECK (actor IN ('MODEL', 'PERSON'));
-- What a request was answered besides its entries, so that it is answered alike when it is repeated. Encoded; only
-- requests that have such an answer have it.
ALTER TABLE chat_requests ADD COLUMN answer bytea;

-- +goose Down
ALTER TABLE chat_requests DROP COLUMN answer;
ALTER TABLE chat_tool_log DROP COLUMN actor;
