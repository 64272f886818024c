-- name: key_add
-- Adds a key. :id; :tenant, null for administrators; :key_hash; :hint; :now; :expires_at
INSERT INTO access_keys (id, tenant, key_hash, hint, created_at, expires_at)
VALUES (:id, :tenant, :key_hash, :hint, :now, :expires_at);

-- name: key_by_hash
-- The key with this hash, ended or not. :key_hash
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM access_keys
WHERE key_hash = :key_hash;

-- name: key_holder
-- The live key with this hash, of an administrator or of a tenant that is not disabled. :key_hash; :now
SELECT k.id, k.tenant, k.hint, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM access_keys AS k LEFT JOIN tenants AS t ON t.id = k.tenant
WHERE
    k.key_hash = :key_hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > :now)
    AND (k.tenant IS NULL OR t.disabled = 0);

-- name: keys_list
-- The keys of a tenant, newest first. :tenant, null for administrators
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM access_keys
WHERE tenant IS :tenant
ORDER BY created_at DESC, id DESC;

-- name: keys_live
-- The live keys of a tenant, newest first. :tenant, null for administrators; :now
SELECT id FROM access_keys
WHERE tenant IS :tenant AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
ORDER BY created_at DESC, id DESC;

-- name: keys_revoke
-- Ends live keys of a tenant. :ids = [id, …]; :tenant, null for administrators; :now
UPDATE access_keys
SET revoked_at = :now
WHERE
    id IN (SELECT value FROM json_each(:ids)) AND tenant IS :tenant
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING id;

-- name: keys_used
-- Notes when keys were used last. :ids = [id, …]; :now
UPDATE access_keys
SET last_used_at = :now
WHERE id IN (SELECT value FROM json_each(:ids));
