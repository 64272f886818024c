-- The records of one address after a place, newest first. :tenant; :key; :now; :at; :place; :limit
-- With a plus before it no index fits created_at: those of the address are few, those of the tenant are not.
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM suppressions
WHERE
    tenant = :tenant AND key = :key AND (+created_at, key || reason) < (:at, :place)
    AND (expires_at IS NULL OR expires_at > :now)
ORDER BY +created_at DESC, key || reason DESC
LIMIT :limit;
