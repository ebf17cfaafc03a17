-- RaiseHistoryBatch notes that a node's batch is being added. It changes nothing if that batch, or a later one, was
-- added before; while another transaction adds it, it waits for the end of that.
-- name: RaiseHistoryBatch :execrows
INSERT INTO quota_history_nodes AS n (node_id, batch, update_time) VALUES (@node_id, @batch, now())
ON CONFLICT (node_id) DO UPDATE SET batch = excluded.batch, update_time = excluded.update_time
WHERE n.batch < excluded.batch;

-- AddHistory adds to the history. The rows come in the order of its key, as all nodes send them: so they lock rows in
-- one order.
-- name: AddHistory :exec
INSERT INTO quota_history AS h (day, user_id, tool_id, calls, tokens)
SELECT unnest(@days::date[]), unnest(@user_ids::text[]), unnest(@tool_ids::text[]), unnest(@calls::bigint[]), unnest(@tokens::bigint[])
ON CONFLICT (day, user_id, tool_id) DO UPDATE SET calls = h.calls + excluded.calls, tokens = h.tokens + excluded.tokens;

-- ForgetHistoryNodes deletes nodes that have added nothing for long, and so are gone.
-- name: ForgetHistoryNodes :exec
DELETE FROM quota_history_nodes WHERE update_time < @before;

-- The List queries return the history after a row, of some days, both included. There is one for each way to find
-- the rows: plans are generic.

-- name: ListHistory :many
SELECT * FROM quota_history
WHERE (day, user_id, tool_id) > (@after_day::date, @after_user_id::text, @after_tool_id::text) AND day <= @last_day
ORDER BY day, user_id, tool_id LIMIT @at_most;

-- name: ListHistoryOfUser :many
SELECT * FROM quota_history
WHERE user_id = @user_id AND (day, tool_id) > (@after_day::date, @after_tool_id::text) AND day <= @last_day
ORDER BY day, tool_id LIMIT @at_most;

-- name: ListHistoryOfTool :many
SELECT * FROM quota_history
WHERE tool_id = @tool_id AND (day, user_id) > (@after_day::date, @after_user_id::text) AND day <= @last_day
ORDER BY day, user_id LIMIT @at_most;

-- name: ListHistoryOfUserAndTool :many
SELECT * FROM quota_history
WHERE user_id = @user_id AND tool_id = @tool_id AND (day, tool_id) > (@after_day::date, @after_tool_id::text) AND day <= @last_day
ORDER BY day LIMIT @at_most;
