-- name: key_add
-- Adds a key, unless one with its hash is known. $1 id; $2 tenant, null for administrators; $3 hash; $4 hint; $5 now;
-- $6 expires_at
INSERT INTO carteiro.access_keys (id, tenant, key_hash, hint, created_at, expires_at)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint)
ON CONFLICT (key_hash) DO NOTHING;

-- name: key_by_hash
-- The key with this hash, ended or not. $1 hash
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM carteiro.access_keys
WHERE key_hash = $1::text;

-- name: key_holder
-- The live key with this hash, of an administrator or of a tenant that is not disabled. $1 hash; $2 now
SELECT k.id, k.tenant, k.hint, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM carteiro.access_keys AS k
WHERE
    k.key_hash = $1::text AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2::bigint)
    AND (k.tenant IS NULL OR (SELECT NOT t.disabled FROM carteiro.tenants AS t WHERE t.id = k.tenant));

-- name: keys_list
-- The keys of a tenant, newest first. $1 tenant, null for administrators
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM carteiro.access_keys
WHERE tenant = $1::text OR ($1::text IS NULL AND tenant IS NULL)
ORDER BY created_at DESC, id DESC;

-- name: keys_live
-- The live keys of a tenant, newest first. $1 tenant, null for administrators; $2 now
SELECT id FROM carteiro.access_keys
WHERE
    (tenant = $1::text OR ($1::text IS NULL AND tenant IS NULL))
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2::bigint)
ORDER BY created_at DESC, id DESC;

-- name: keys_revoke
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

-- name: keys_used
-- Notes when keys were used last. $1 ids; $2 now
WITH held AS (
    SELECT id FROM carteiro.access_keys
    WHERE id = ANY ($1::text[])
    ORDER BY id
    FOR NO KEY UPDATE
)
UPDATE carteiro.access_keys
SET last_used_at = $2::bigint
WHERE id = ANY (ARRAY(SELECT held.id FROM held));
