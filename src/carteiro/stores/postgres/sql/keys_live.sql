-- The live keys of a tenant, newest first. $1 tenant, null for administrators; $2 now
SELECT id FROM carteiro.access_keys
WHERE
    (tenant = $1::text OR ($1::text IS NULL AND tenant IS NULL))
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2::bigint)
ORDER BY created_at DESC, id DESC;
