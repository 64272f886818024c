-- The live key with this hash, of an administrator or of a tenant that is not disabled. :key_hash; :now
SELECT k.id, k.tenant, k.hint, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM access_keys AS k LEFT JOIN tenants AS t ON t.id = k.tenant
WHERE
    k.key_hash = :key_hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > :now)
    AND (k.tenant IS NULL OR t.disabled = 0);
