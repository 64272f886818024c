-- name: suppressions_count
-- The number of records of a tenant. :tenant
SELECT coalesce(max(count), 0) FROM suppression_counts WHERE tenant = :tenant;

-- name: suppressions_find
-- The suppressed ones of these addresses. :now; :keys = [[tenant, key], …]
SELECT i.value ->> 0, i.value ->> 1
FROM json_each(:keys) AS i
WHERE EXISTS (
    SELECT 1 FROM suppressions AS s
    WHERE
        s.tenant = i.value ->> 0 AND s.key = i.value ->> 1 AND s.is_active = 1
        AND (s.expires_at IS NULL OR s.expires_at > :now)
);

-- name: suppressions_known
-- The records of addresses. :tenant; :keys = [key, …]
SELECT s.key, s.reason, s.address, s.created_at, s.expires_at, s.is_active, s.bounces
FROM json_each(:keys) AS i CROSS JOIN suppressions AS s ON s.tenant = :tenant AND s.key = i.value;

-- name: suppressions_list_of_key
-- The records of one address after a position, newest first. :tenant; :key; :now; :at; :place; :limit
-- The plus keeps created_at from using an index: the address has few records, the tenant many.
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM suppressions
WHERE
    tenant = :tenant AND key = :key AND (+created_at, key || reason) < (:at, :place)
    AND (expires_at IS NULL OR expires_at > :now)
ORDER BY +created_at DESC, key || reason DESC
LIMIT :limit;

-- name: suppressions_put
-- Stores records of addresses. :tenant; :rows = [[key, reason, address, created_at, expires_at, is_active, bounces], …]
INSERT INTO suppressions (tenant, key, reason, address, created_at, expires_at, is_active, bounces)
SELECT
    :tenant, r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6
FROM json_each(:rows) AS r
WHERE true
ON CONFLICT (tenant, key, reason) DO UPDATE SET
    address = excluded.address, created_at = excluded.created_at, expires_at = excluded.expires_at,
    is_active = excluded.is_active, bounces = excluded.bounces;

-- name: suppressions_remove
-- Deletes the records of addresses. :tenant; :keys = [key, …]
DELETE FROM suppressions
WHERE tenant = :tenant AND key IN (SELECT i.value FROM json_each(:keys) AS i);
