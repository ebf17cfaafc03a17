-- AddOutcomes adds the outcomes of calls that have none. The rows come in the order of their calls, as all nodes send
-- them: so they lock rows in one order.
-- name: AddOutcomes :exec
INSERT INTO call_outcomes (call_id, chat_id, user_id, tool_id, function, outcome, latency_ms, tokens, report_time,
    turn, routing_mode)
SELECT unnest(@call_ids::text[]), unnest(@chat_ids::text[]), unnest(@user_ids::text[]), unnest(@tool_ids::text[]), unnest(@functions::text[]),
    unnest(@outcomes::text[]), unnest(@latencies_ms::bigint[]), unnest(@tokens::bigint[]), unnest(@report_times::timestamptz[]),
    unnest(@turns::integer[]), nullif(unnest(@routing_modes::text[]), '')
ON CONFLICT (call_id) DO NOTHING;

-- PruneOutcomes deletes outcomes from before an instant, so many at most.
-- name: PruneOutcomes :execrows
DELETE FROM call_outcomes WHERE call_id IN
    (SELECT o.call_id FROM call_outcomes o WHERE o.report_time < @before ORDER BY o.report_time LIMIT @at_most);
