-- name: keys_revoke
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

-- name: keys_used
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
