-- The records of a tenant after a place, newest first. $1 tenant; $2 now; $3 at; $4 place; $5 limit
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM carteiro.suppressions
WHERE
    tenant = $1::text AND (created_at, key || reason) < ($3::bigint, $4::text)
    AND (expires_at IS NULL OR expires_at > $2::bigint)
ORDER BY created_at DESC, key || reason DESC
LIMIT $5::bigint;
