-- The keys of a tenant, newest first. :tenant, null for administrators
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM access_keys
WHERE tenant IS :tenant
ORDER BY created_at DESC, id DESC;
