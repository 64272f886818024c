-- The keys of a tenant, newest first. $1 tenant, null for administrators
SELECT id, tenant, hint, created_at, expires_at, revoked_at, last_used_at
FROM carteiro.access_keys
WHERE tenant = $1::text OR ($1::text IS NULL AND tenant IS NULL)
ORDER BY created_at DESC, id DESC;
