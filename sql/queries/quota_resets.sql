-- AddReset writes nothing if the request was written down before.
-- name: AddReset :execrows
INSERT INTO quota_resets (request_id, user_id, quota_id, reason, used, create_time)
VALUES (@request_id, @user_id, @quota_id, @reason, @used, now()) ON CONFLICT DO NOTHING;

-- GetReset returns a request as it was written down, and whether it was carried out.
-- name: GetReset :one
SELECT r.*, EXISTS (SELECT 1 FROM quota_resets_done d WHERE d.request_id = r.request_id) AS done
FROM quota_resets r WHERE r.request_id = @request_id;

-- name: EndReset :exec
INSERT INTO quota_resets_done (request_id, create_time) VALUES (@request_id, now()) ON CONFLICT DO NOTHING;
