-- Ends live keys of a tenant. $1 ids; $2 tenant, null for administrators; $3 now
WITH held AS (
    SELECT id FROM carteiro.access_keys
    WHERE id = ANY ($1::text[])
    ORDER BY id
    FOR NO KEY UPDATE
)
UPDATE carteiro.access_keys
SET revoked_at = $3::bigint
WHERE
    id = ANY (ARRAY(SELECT held.id FROM held)) AND tenant IS NOT DISTINCT FROM $2::text
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3::bigint)
RETURNING id;
