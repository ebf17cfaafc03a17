-- name: ListUsers :many
SELECT user_id, device_ids, device_type_ids, group_ids, start_times, expire_times
FROM users WHERE user_id = ANY (@user_ids::text[]) ORDER BY user_id;

-- ListUsersAfter returns users in the order of their ids.
-- name: ListUsersAfter :many
SELECT user_id, device_ids, device_type_ids, group_ids, start_times, expire_times
FROM users WHERE user_id > @after::text ORDER BY user_id LIMIT @at_most;

-- DeviceOwners returns who owns those of the devices that exist.
-- name: DeviceOwners :many
SELECT device_id, user_id FROM devices WHERE device_id = ANY (@device_ids::text[]);

-- Referrers returns who keeps objects from going: members of the groups, owners of devices of the device types,
-- chats of the users. Of each object the first few by id, and how many there are. Users besides do not count.
-- name: Referrers :many
WITH referrers AS (
    SELECT 'groups' AS section, m.group_id AS object_id, m.user_id AS referrer_id
    FROM memberships m WHERE m.group_id = ANY (@group_ids::text[]) AND m.user_id NOT IN (SELECT unnest(@besides::text[]))
    UNION ALL
    SELECT DISTINCT 'device_types' AS section, d.device_type_id AS object_id, d.user_id AS referrer_id
    FROM devices d WHERE d.device_type_id = ANY (@device_type_ids::text[]) AND d.user_id NOT IN (SELECT unnest(@besides::text[]))
    UNION ALL
    SELECT 'users' AS section, c.user_id AS object_id, c.chat_id AS referrer_id
    FROM chats c WHERE c.user_id = ANY (@user_ids::text[])
), ranked AS (
    SELECT section, object_id, referrer_id,
           row_number() OVER (PARTITION BY section, object_id ORDER BY referrer_id) AS place,
           count(*) OVER (PARTITION BY section, object_id) AS total
    FROM referrers
)
SELECT section::text AS section, object_id, referrer_id, total FROM ranked
WHERE place <= 5 ORDER BY section, object_id, referrer_id LIMIT 100;

-- PutUser writes what answers need of a user. The tables of devices and memberships must be made to say the same.
-- name: PutUser :exec
INSERT INTO users (user_id, device_ids, device_type_ids, group_ids, start_times, expire_times)
VALUES (@user_id, @device_ids, @device_type_ids, @group_ids, @start_times, @expire_times)
ON CONFLICT (user_id) DO UPDATE SET (device_ids, device_type_ids, group_ids, start_times, expire_times) =
    (excluded.device_ids, excluded.device_type_ids, excluded.group_ids, excluded.start_times, excluded.expire_times);

-- name: DeleteUser :exec
DELETE FROM users WHERE user_id = @user_id;

-- name: ClearDevices :exec
DELETE FROM devices WHERE user_id = @user_id;

-- name: AddDevices :exec
INSERT INTO devices (user_id, device_id, device_type_id) SELECT @user_id, unnest(@device_ids::text[]), unnest(@device_type_ids::text[]);

-- name: ClearMemberships :exec
DELETE FROM memberships WHERE user_id = @user_id;

-- name: AddMembership :exec
INSERT INTO memberships (user_id, group_id, start_time, expire_time)
VALUES (@user_id, @group_id, sqlc.narg(start_time), sqlc.narg(expire_time));
