-- name: key_add
-- Adds a key, unless one with its hash is known. :id; :tenant; :key_hash; :hint; :now; :expires_at; :name; :role
INSERT INTO carteiro.access_keys (id, tenant, key_hash, hint, created_at, expires_at, name, role)
VALUES (:id, :tenant, :key_hash, :hint, :now, :expires_at, :name, :role)
ON CONFLICT (key_hash) DO NOTHING;

-- name: key_by_hash
-- The key with this hash, ended or not. :key_hash
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at, name, role
FROM carteiro.access_keys
WHERE key_hash = :key_hash;

-- name: key_holder
-- The live key with this hash, unless its tenant is disabled. :key_hash; :now
SELECT k.id, k.tenant, k.hint, k.created_at, k.expires_at, k.revoked_at, k.last_used_at, k.name, k.role
FROM carteiro.access_keys AS k
WHERE
    k.key_hash = :key_hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > :now)
    AND (k.tenant IS NULL OR (SELECT NOT t.disabled FROM carteiro.tenants AS t WHERE t.id = k.tenant));

-- name: keys_list
-- The keys of a tenant, newest first. :tenant, null for the tokens of administrators
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at, name, role
FROM carteiro.access_keys
WHERE (tenant = :tenant::text AND role IS NULL) OR (:tenant::text IS NULL AND role IS NOT NULL)
ORDER BY created_at DESC, id DESC;

-- name: keys_live
-- The live keys of a tenant, newest first. :tenant, null for the tokens of administrators; :now
SELECT id, name, role, tenant FROM carteiro.access_keys
WHERE
    ((tenant = :tenant::text AND role IS NULL) OR (:tenant::text IS NULL AND role IS NOT NULL))
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
ORDER BY created_at DESC, id DESC;

-- name: keys_trim
-- Deletes ended keys of a tenant, except the newest. :tenant, null for the tokens of administrators; :now; :most
DELETE FROM carteiro.access_keys
WHERE
    ((tenant = :tenant::text AND role IS NULL) OR (:tenant::text IS NULL AND role IS NOT NULL))
    AND (revoked_at IS NOT NULL OR expires_at <= :now)
    AND id NOT IN (
        SELECT id FROM carteiro.access_keys
        WHERE
            ((tenant = :tenant::text AND role IS NULL) OR (:tenant::text IS NULL AND role IS NOT NULL))
            AND (revoked_at IS NOT NULL OR expires_at <= :now)
        ORDER BY created_at DESC, id DESC
        LIMIT :most
    );

-- name: keys_revoke (sqlite)
-- Ends live keys of a tenant. :ids = [id, …]; :tenant, null for the tokens of administrators; :now
UPDATE access_keys
SET revoked_at = :now
WHERE
    id IN (SELECT value FROM json_each(:ids)) AND iif(:tenant IS NULL, role IS NOT NULL, tenant = :tenant AND role IS NULL)
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING id, tenant, name;

-- name: keys_revoke (postgres)
-- Ends live keys of a tenant. :ids = [id, …]; :tenant, null for the tokens of administrators; :now
WITH held AS (
    SELECT id FROM carteiro.access_keys
    WHERE id = ANY (:ids::text[])
    ORDER BY id
    FOR NO KEY UPDATE
)
UPDATE carteiro.access_keys
SET revoked_at = :now
WHERE
    id = ANY (ARRAY(SELECT held.id FROM held))
    AND CASE WHEN :tenant::text IS NULL THEN role IS NOT NULL ELSE tenant = :tenant::text AND role IS NULL END
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING id, tenant, name;

-- name: keys_used (sqlite)
-- Records when keys were last used. :ids = [id, …]; :now
UPDATE access_keys
SET last_used_at = :now
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: keys_used (postgres)
-- Records when keys were last used. :ids = [id, …]; :now
WITH held AS (
    SELECT id FROM carteiro.access_keys
    WHERE id = ANY (:ids::text[])
    ORDER BY id
    FOR NO KEY UPDATE
)
UPDATE carteiro.access_keys
SET last_used_at = :now
WHERE id = ANY (ARRAY(SELECT held.id FROM held));
