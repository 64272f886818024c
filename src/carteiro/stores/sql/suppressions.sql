-- name: suppressions_blank
-- Blanks a suppressed address: only its hash stays. :tenant; :key
UPDATE carteiro.suppressions
SET address = NULL
WHERE tenant = :tenant AND key = :key;

-- name: suppressions_list
-- The records of a tenant after a position, newest first. :tenant; :now; :at; :place; :limit
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM carteiro.suppressions
WHERE
    tenant = :tenant AND (created_at, key || reason) < (:at, :place)
    AND (expires_at IS NULL OR expires_at > :now)
ORDER BY created_at DESC, key || reason DESC
LIMIT :limit;
