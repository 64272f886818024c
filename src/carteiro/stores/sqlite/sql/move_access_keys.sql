-- The next keys. :after = [id]
SELECT id, tenant, key_hash, hint, created_at, expires_at, revoked_at, last_used_at
FROM access_keys
WHERE id > (:after ->> 0)
ORDER BY id;
