-- The key with this hash, ended or not. :key_hash
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM access_keys
WHERE key_hash = :key_hash;
