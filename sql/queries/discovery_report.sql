-- What is reported of a span of time, by routing mode: see DiscoveryReport in the API.

-- ReportSearches counts searches, those that found nothing, and those that were in vain and tried again.
-- name: ReportSearches :many
WITH made AS (
    SELECT s.routing_mode, s.chat_id, s.found_tool_ids, s.create_time,
        lead(s.create_time) OVER (PARTITION BY s.chat_id, s.user_id ORDER BY s.create_time, s.search_id) < s.create_time + interval '5 minutes' AS again
    FROM searches s WHERE s.kind = 'SEARCH' AND s.create_time >= @start_time AND s.create_time < @end_time
)
SELECT made.routing_mode, count(*) AS searches, count(*) FILTER (WHERE cardinality(made.found_tool_ids) = 0) AS without_matches,
    count(*) FILTER (WHERE made.again
        AND NOT EXISTS (SELECT 1 FROM chat_tool_log l WHERE l.chat_id = made.chat_id AND l.action = 'ENABLE' AND l.tool_id = ANY (made.found_tool_ids)
            AND l.create_time >= made.create_time AND l.create_time < made.create_time + interval '1 hour')
        AND NOT EXISTS (SELECT 1 FROM call_outcomes o WHERE o.chat_id = made.chat_id AND o.tool_id = ANY (made.found_tool_ids)
            AND o.report_time >= made.create_time AND o.report_time < made.create_time + interval '1 hour')) AS retries
FROM made GROUP BY made.routing_mode;

-- ReportNarrowings counts narrowings, and tells which share of the effective tools they left out.
-- name: ReportNarrowings :many
SELECT routing_mode, count(*) AS narrowings,
    avg(1 - cardinality(kept_tool_ids)::float8 / greatest(effective_count, 1))::float8 AS left_out
FROM searches WHERE kind = 'NARROWING' AND create_time >= @start_time AND create_time < @end_time
GROUP BY routing_mode;

-- ReportRouted joins calls that went well with the last route that led to them, and tells where it had the tool. Only if
-- there is none it is the last search after which the tool was turned on: of several steps, each is searched for before
-- all are turned on. A tool that was turned on after a narrowing could not have been kept by it.
-- name: ReportRouted :many
SELECT routing_mode, count(*) AS routed, count(*) FILTER (WHERE place = 1) AS top1, count(*) FILTER (WHERE place <= 3) AS top3,
    count(*) FILTER (WHERE missed) AS missed
FROM (
    SELECT DISTINCT s.search_id, o.tool_id, s.routing_mode, s.place, s.missed
    FROM call_outcomes o CROSS JOIN LATERAL (
        SELECT c.search_id, c.routing_mode, array_position(c.found_tool_ids, o.tool_id) AS place,
            c.kind = 'NARROWING' AND o.tool_id <> ALL (c.kept_tool_ids) AS missed
        FROM searches c
        WHERE c.chat_id = o.chat_id AND c.user_id = o.user_id AND c.routing_mode <> 'LEGACY'
            AND c.create_time <= o.report_time AND c.create_time > o.report_time - interval '1 hour'
            AND (o.tool_id = ANY (c.found_tool_ids)
                OR (c.kind = 'SEARCH' OR o.tool_id <> ALL (c.kept_tool_ids)) AND (c.kind = 'SEARCH') = EXISTS (
                    SELECT 1 FROM chat_tool_log l WHERE l.chat_id = o.chat_id AND l.tool_id = o.tool_id AND l.action = 'ENABLE'
                        AND l.create_time BETWEEN c.create_time AND o.report_time))
        ORDER BY (c.kind = 'NARROWING' OR o.tool_id = ANY (c.found_tool_ids)) DESC, c.create_time DESC, c.search_id DESC LIMIT 1) s
    WHERE o.outcome = 'SUCCESS' AND o.report_time >= @start_time AND o.report_time < @end_time) routed
GROUP BY routing_mode;

-- ReportEnabled counts what was turned on after a search that found it, and what of it was not called after. What was
-- turned on later than settle_time may yet be. OFFSET 0 keeps the planner from reading the logs of all chats.
-- name: ReportEnabled :many
SELECT routing_mode, count(*) AS enabled, count(*) FILTER (WHERE NOT used) AS unused
FROM (
    SELECT DISTINCT ON (l.chat_id, l.sequence_number) s.routing_mode, EXISTS (
        SELECT 1 FROM call_outcomes o WHERE o.chat_id = l.chat_id AND o.tool_id = l.tool_id
            AND o.report_time >= l.create_time AND o.report_time < l.create_time + interval '1 hour') AS used
    FROM searches s CROSS JOIN LATERAL (
        SELECT t.chat_id, t.sequence_number, t.tool_id, t.create_time FROM chat_tool_log t
        WHERE t.chat_id = s.chat_id AND t.action = 'ENABLE' AND t.tool_id = ANY (s.found_tool_ids)
            AND t.create_time >= s.create_time AND t.create_time < s.create_time + interval '1 hour' AND t.create_time < @settle_time
        OFFSET 0) l
    WHERE s.kind = 'SEARCH' AND s.create_time >= @start_time AND s.create_time < @end_time
    ORDER BY l.chat_id, l.sequence_number, s.create_time DESC, s.search_id DESC) enabled
GROUP BY routing_mode;

-- ReportCalls counts calls, those that failed, and the turns that they were made in.
-- name: ReportCalls :many
SELECT coalesce(routing_mode, '')::text AS routing_mode, count(*) AS calls, count(*) FILTER (WHERE outcome <> 'SUCCESS') AS failed,
    count(DISTINCT (chat_id, turn)) AS turns
FROM call_outcomes WHERE outcome <> 'CANCELLED' AND report_time >= @start_time AND report_time < @end_time
GROUP BY routing_mode;

-- CoreEvidence tells of each tool who called it, and which searches led to it. The totals are of all tools.
-- name: CoreEvidence :many
WITH calls AS (
    SELECT o.tool_id, o.user_id, o.chat_id, o.report_time, o.outcome = 'SUCCESS' AS well FROM call_outcomes o
    WHERE o.outcome <> 'CANCELLED' AND o.report_time >= @start_time AND o.report_time < @end_time
), totals AS (
    SELECT count(DISTINCT user_id) AS users, count(DISTINCT chat_id) AS chats FROM calls
), led AS (
    SELECT u.tool_id, count(DISTINCT u.search_id) AS searches FROM search_uses u
    WHERE u.report_time >= @start_time AND u.report_time < @end_time GROUP BY u.tool_id
)
SELECT calls.tool_id, count(*) AS calls, count(*) FILTER (WHERE NOT calls.well) AS failed,
    count(DISTINCT calls.user_id) FILTER (WHERE calls.well) AS users, count(DISTINCT calls.chat_id) FILTER (WHERE calls.well) AS chats,
    count(DISTINCT (calls.report_time AT TIME ZONE 'UTC')::date) FILTER (WHERE calls.well) AS days,
    coalesce(min(led.searches), 0)::bigint AS searches, min(totals.users)::bigint AS all_users, min(totals.chats)::bigint AS all_chats
FROM calls CROSS JOIN totals LEFT JOIN led ON led.tool_id = calls.tool_id
GROUP BY calls.tool_id;
