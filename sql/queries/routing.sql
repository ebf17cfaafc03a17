-- ListRoutingModes returns all of them; an empty id is for users of whose groups none has a mode.
-- name: ListRoutingModes :many
SELECT coalesce(group_id, '')::text AS group_id, mode FROM routing_modes ORDER BY coalesce(group_id, '');

-- LockGroup keeps a group from going.
-- name: LockGroup :one
SELECT group_id FROM groups WHERE group_id = @group_id FOR KEY SHARE;

-- name: DeleteRoutingMode :exec
DELETE FROM routing_modes WHERE coalesce(group_id, '') = @group_id::text;

-- name: AddRoutingMode :exec
INSERT INTO routing_modes (group_id, mode) VALUES (nullif(@group_id::text, ''), @mode);
