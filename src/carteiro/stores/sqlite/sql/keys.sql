-- name: keys_revoke
-- Ends live keys of a tenant. :ids = [id, …]; :tenant, null for administrators; :now
UPDATE access_keys
SET revoked_at = :now
WHERE
    id IN (SELECT value FROM json_each(:ids)) AND tenant IS :tenant
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING id;

-- name: keys_used
-- Records when keys were last used. :ids = [id, …]; :now
UPDATE access_keys
SET last_used_at = :now
WHERE id IN (SELECT value FROM json_each(:ids));
