-- +goose Up

-- What answers need of a user stands in the user's own row: reading it takes one look, and not one at each of three
-- tables. Whoever writes a user writes both; the tables say what may be (foreign keys, one owner of a device).
ALTER TABLE users
    ADD COLUMN device_ids text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD COLUMN device_type_ids text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD COLUMN group_ids text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD COLUMN start_times timestamptz[] NOT NULL DEFAULT '{}',
    ADD COLUMN expire_times timestamptz[] NOT NULL DEFAULT '{}';

UPDATE users u SET device_ids = d.ids, device_type_ids = d.type_ids
FROM (SELECT user_id, array_agg(device_id ORDER BY device_id) AS ids, array_agg(device_type_id ORDER BY device_id) AS type_ids
      FROM devices GROUP BY user_id) AS d
WHERE d.user_id = u.user_id;

UPDATE users u SET group_ids = m.group_ids, start_times = m.start_times, expire_times = m.expire_times
FROM (SELECT user_id, array_agg(group_id ORDER BY group_id) AS group_ids,
             array_agg(coalesce(start_time, '0001-01-01 00:00:00+00') ORDER BY group_id) AS start_times,
             array_agg(coalesce(expire_time, '0001-01-01 00:00:00+00') ORDER BY group_id) AS expire_times
      FROM memberships GROUP BY user_id) AS m
WHERE m.user_id = u.user_id;

ALTER TABLE users
    ADD CONSTRAINT users_devices_ck CHECK (cardinality(device_ids) = cardinality(device_type_ids)),
    ADD CONSTRAINT users_memberships_ck CHECK (cardinality(group_ids) = cardinality(start_times)
        AND cardinality(group_ids) = cardinality(expire_times));
COMMENT ON COLUMN users.device_ids IS 'Of devices, and their types in device_type_ids.';
COMMENT ON COLUMN users.group_ids IS 'Of memberships, and when they start and expire; the year 1: never.';

-- +goose Down
ALTER TABLE users DROP COLUMN device_ids, DROP COLUMN device_type_ids, DROP COLUMN group_ids, DROP COLUMN start_times, DROP COLUMN expire_times;
