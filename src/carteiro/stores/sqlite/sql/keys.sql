-- name: keys_revoke
-- Ends live keys of a tenant. :ids = [id, …]; :tenant, null for the tokens of administrators; :now
UPDATE access_keys
SET revoked_at = :now
WHERE
    id IN (SELECT value FROM json_each(:ids)) AND iif(:tenant IS NULL, role IS NOT NULL, tenant = :tenant AND role IS NULL)
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING id, tenant, name;

-- name: keys_used
-- Records when keys were last used. :ids = [id, …]; :now
UPDATE access_keys
SET last_used_at = :now
WHERE id IN (SELECT value FROM json_each(:ids));
