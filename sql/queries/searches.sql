-- name: AddSearches :copyfrom
INSERT INTO searches (chat_id, user_id, group_ids, features, query, found_tool_ids, create_time, kind, routing_mode, effective_count, kept_tool_ids)
VALUES (@chat_id, @user_id, @group_ids, @features, @query, @found_tool_ids, @create_time, @kind, @routing_mode, @effective_count, @kept_tool_ids);

-- AddSearchUses joins calls that went well with the searches that led to them: of each, the last one of the chat in the
-- hour before that found the tool; if none did, the last one after which the tool was turned on. What has no features teaches nothing, and
-- stands in nobody's way.
-- name: AddSearchUses :exec
INSERT INTO search_uses (call_id, search_id, user_id, group_ids, tool_id, private, features, report_time)
SELECT o.call_id, s.search_id, o.user_id, s.group_ids, o.tool_id,
    EXISTS (SELECT 1 FROM tools t WHERE t.tool_id = o.tool_id AND t.owner_user_id IS NOT NULL), s.features, o.report_time
FROM call_outcomes o CROSS JOIN LATERAL (
    SELECT search_id, group_ids, features FROM searches c
    WHERE c.chat_id = o.chat_id AND c.user_id = o.user_id AND cardinality(c.features) > 0
        AND c.create_time <= o.report_time AND c.create_time > o.report_time - interval '1 hour'
        AND (o.tool_id = ANY (c.found_tool_ids) OR EXISTS (
            SELECT 1 FROM chat_tool_log l WHERE l.chat_id = o.chat_id AND l.tool_id = o.tool_id AND l.action = 'ENABLE'
                AND l.create_time BETWEEN c.create_time AND o.report_time))
    ORDER BY (o.tool_id = ANY (c.found_tool_ids)) DESC, c.create_time DESC, c.search_id DESC LIMIT 1) s
WHERE o.call_id = ANY (@call_ids::text[]) AND o.outcome = 'SUCCESS'
ORDER BY o.call_id
ON CONFLICT (call_id) DO NOTHING;

-- ListSearchUses returns the newest uses that were written since an instant, so many at most.
-- name: ListSearchUses :many
SELECT call_id, user_id, group_ids, tool_id, private, features, report_time, create_time FROM search_uses
WHERE create_time >= @since ORDER BY report_time DESC, call_id LIMIT @at_most;

-- PruneSearches deletes searches from before an instant, so many at most.
-- name: PruneSearches :execrows
DELETE FROM searches WHERE search_id IN
    (SELECT s.search_id FROM searches s WHERE s.create_time < @before ORDER BY s.create_time LIMIT @at_most);

-- PruneSearchUses deletes uses from before an instant, so many at most.
-- name: PruneSearchUses :execrows
DELETE FROM search_uses WHERE call_id IN
    (SELECT u.call_id FROM search_uses u WHERE u.report_time < @before ORDER BY u.report_time LIMIT @at_most);
