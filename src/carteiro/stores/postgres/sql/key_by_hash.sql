-- The key with this hash, ended or not. $1 hash
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM carteiro.access_keys
WHERE key_hash = $1::text;
