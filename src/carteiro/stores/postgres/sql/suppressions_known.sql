-- The records of addresses. $1 tenant; $2 keys
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM carteiro.suppressions
WHERE tenant = $1::text AND key = ANY ($2::text[]);
