-- The live key with this hash, of an administrator or of a tenant that is not disabled. $1 hash; $2 now
SELECT k.id, k.tenant, k.hint, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM carteiro.access_keys AS k
WHERE
    k.key_hash = $1::text AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2::bigint)
    AND (k.tenant IS NULL OR (SELECT NOT t.disabled FROM carteiro.tenants AS t WHERE t.id = k.tenant));
