-- ListSharedVectors returns those of some fingerprints.
-- name: ListSharedVectors :many
SELECT fingerprint, dimensions, vector FROM shared_vectors WHERE fingerprint = ANY (@fingerprints::bytea[]) ORDER BY fingerprint, dimensions;

-- ListPrivateVectors returns those of some fingerprints that are one user's, of tools that are still his.
-- name: ListPrivateVectors :many
SELECT v.tool_id, v.fingerprint, v.dimensions, v.vector FROM private_vectors v JOIN tools t USING (tool_id, owner_user_id)
WHERE v.owner_user_id = @owner_user_id AND v.fingerprint = ANY (@fingerprints::bytea[]) ORDER BY v.tool_id, v.fingerprint, v.dimensions;

-- ClaimVectors takes those that no other server has claimed, for a while, and returns them. Those that the claimant has
-- are taken again.
-- name: ClaimVectors :many
INSERT INTO vector_claims (fingerprint, claimant, expire_time)
SELECT f.fingerprint, @claimant::text, clock_timestamp() + make_interval(secs => @seconds::double precision)
FROM (SELECT unnest(@fingerprints::bytea[]) AS fingerprint) f ORDER BY f.fingerprint
ON CONFLICT (fingerprint) DO UPDATE SET (claimant, expire_time) = (excluded.claimant, excluded.expire_time)
WHERE vector_claims.claimant = excluded.claimant OR vector_claims.expire_time < clock_timestamp()
RETURNING fingerprint;

-- name: ReleaseVectors :exec
DELETE FROM vector_claims WHERE fingerprint = ANY (@fingerprints::bytea[]) AND claimant = @claimant;

-- AddSharedVectors adds those that are not there, and gives their claims back.
-- name: AddSharedVectors :exec
WITH released AS (DELETE FROM vector_claims WHERE fingerprint = ANY (@fingerprints::bytea[]) AND claimant = @claimant)
INSERT INTO shared_vectors (fingerprint, dimensions, vector, model)
SELECT n.fingerprint, octet_length(n.vector) / 4, n.vector, @model::text
FROM (SELECT unnest(@fingerprints::bytea[]) AS fingerprint, unnest(@vectors::bytea[]) AS vector) n ORDER BY n.fingerprint
ON CONFLICT (fingerprint, dimensions) DO NOTHING;

-- AddPrivateVectors adds those that are not there, of tools that are still the user's, and gives their claims back. A tool
-- that is being deleted is waited for.
-- name: AddPrivateVectors :exec
WITH released AS (DELETE FROM vector_claims WHERE fingerprint = ANY (@fingerprints::bytea[]) AND claimant = @claimant)
INSERT INTO private_vectors (owner_user_id, tool_id, fingerprint, dimensions, vector, model)
SELECT t.owner_user_id, t.tool_id, n.fingerprint, octet_length(n.vector) / 4, n.vector, @model::text
FROM (SELECT unnest(@tool_ids::text[]) AS tool_id, unnest(@fingerprints::bytea[]) AS fingerprint, unnest(@vectors::bytea[]) AS vector) n
JOIN tools t ON t.tool_id = n.tool_id AND t.owner_user_id = @owner_user_id ORDER BY t.tool_id, n.fingerprint FOR KEY SHARE OF t
ON CONFLICT (owner_user_id, tool_id, fingerprint, dimensions) DO NOTHING;

-- The Drop queries delete vectors that cannot be used.

-- name: DropSharedVectors :exec
DELETE FROM shared_vectors WHERE (fingerprint, dimensions) IN (SELECT unnest(@fingerprints::bytea[]), unnest(@dimensions::integer[]));

-- name: DropPrivateVectors :exec
DELETE FROM private_vectors WHERE owner_user_id = @owner_user_id
    AND (fingerprint, dimensions) IN (SELECT unnest(@fingerprints::bytea[]), unnest(@dimensions::integer[]));

-- The Need queries note that tools have the texts, once a day.

-- name: NeedSharedVectors :exec
UPDATE shared_vectors SET need_time = statement_timestamp()
WHERE fingerprint = ANY (@fingerprints::bytea[]) AND need_time < statement_timestamp() - interval '1 day';

-- name: NeedPrivateVectors :exec
UPDATE private_vectors SET need_time = statement_timestamp()
WHERE owner_user_id = @owner_user_id AND fingerprint = ANY (@fingerprints::bytea[]) AND need_time < statement_timestamp() - interval '1 day';

-- The Prune queries delete what was not needed since an instant, so many rows at most.

-- name: PruneSharedVectors :execrows
DELETE FROM shared_vectors WHERE (fingerprint, dimensions) IN
    (SELECT v.fingerprint, v.dimensions FROM shared_vectors v WHERE v.need_time < @before ORDER BY v.need_time LIMIT @at_most FOR UPDATE);

-- name: PrunePrivateVectors :execrows
DELETE FROM private_vectors WHERE (owner_user_id, tool_id, fingerprint, dimensions) IN
    (SELECT v.owner_user_id, v.tool_id, v.fingerprint, v.dimensions FROM private_vectors v WHERE v.need_time < @before ORDER BY v.need_time LIMIT @at_most FOR UPDATE);

-- PruneVectorClaims deletes claims of servers that ended before they had the vectors, by the database's clock.
-- name: PruneVectorClaims :execrows
DELETE FROM vector_claims WHERE expire_time < statement_timestamp() - interval '1 hour';

-- name: ErasePrivateVectors :execrows
DELETE FROM private_vectors WHERE owner_user_id = @user_id;
