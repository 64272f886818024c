-- The live keys of a tenant, newest first. :tenant, null for administrators; :now
SELECT id FROM access_keys
WHERE tenant IS :tenant AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
ORDER BY created_at DESC, id DESC;
