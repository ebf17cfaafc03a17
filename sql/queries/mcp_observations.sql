-- ListMcpObservations returns those of all tool types, or of some.
-- name: ListMcpObservations :many
SELECT * FROM mcp_observations WHERE @every::bool OR tool_type_id = ANY (@ids::text[]) ORDER BY tool_type_id, name;

-- PutMcpObservations writes what a server says of some functions; an empty text: it lacks them.
-- name: PutMcpObservations :exec
INSERT INTO mcp_observations (tool_type_id, name, function, observe_time)
SELECT @tool_type_id, unnest(@names::text[]), nullif(unnest(@functions::text[]), '')::jsonb, @observe_time
ON CONFLICT (tool_type_id, name) DO UPDATE SET (function, observe_time) = (excluded.function, excluded.observe_time);

-- name: DropMcpObservations :exec
DELETE FROM mcp_observations WHERE tool_type_id = @tool_type_id AND name = ANY (@names::text[]);
