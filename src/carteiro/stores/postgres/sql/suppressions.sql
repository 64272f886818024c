-- name: suppressions_count
-- The number of records of a tenant, counted up to :most. The caller holds the tenant. :tenant; :most
SELECT count(*) FROM (SELECT FROM carteiro.suppressions WHERE tenant = :tenant LIMIT :most) AS kept;

-- name: suppressions_find
-- The suppressed ones of these addresses. :now; :keys = [[tenant, key], …]
SELECT i.tenant, i.key
FROM unnest(:keys_0::text[], :keys_1::text[]) AS i (tenant, key)
CROSS JOIN LATERAL (
    SELECT FROM carteiro.suppressions AS s
    WHERE
        s.tenant = i.tenant AND s.key = i.key AND s.is_active
        AND (s.expires_at IS NULL OR s.expires_at > :now)
    LIMIT 1
) AS s;

-- name: suppressions_known
-- The records of addresses. :tenant; :keys = [key, …]
SELECT s.key, s.reason, s.address, s.created_at, s.expires_at, s.is_active, s.bounces
FROM unnest(:keys::text[]) AS i (key)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.suppressions AS n WHERE n.tenant = :tenant AND n.key = i.key OFFSET 0
) AS s;

-- name: suppressions_list_of_key
-- The records of one address after a position, newest first. :tenant; :key; :now; :at; :place; :limit
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM carteiro.suppressions
WHERE
    tenant = :tenant AND key = :key AND (created_at, key || reason) < (:at, :place)
    AND (expires_at IS NULL OR expires_at > :now)
ORDER BY created_at DESC, key || reason DESC
LIMIT :limit;

-- name: suppressions_put
-- Stores records of addresses. The caller holds the tenant.
-- :tenant; :rows = [[key, reason, address, created_at, expires_at, is_active, bounces], …]
INSERT INTO carteiro.suppressions (tenant, key, reason, address, created_at, expires_at, is_active, bounces)
SELECT :tenant::text, r.*
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::bigint[], :rows_4::bigint[], :rows_5::boolean[],
    :rows_6::text[]
) AS r
ON CONFLICT (tenant, key, reason) DO UPDATE SET
    address = excluded.address, created_at = excluded.created_at, expires_at = excluded.expires_at,
    is_active = excluded.is_active, bounces = excluded.bounces;

-- name: suppressions_remove
-- Deletes the records of addresses. :tenant; :keys = [key, …]
DELETE FROM carteiro.suppressions
WHERE tenant = :tenant AND key = ANY (ARRAY(SELECT unnest(:keys::text[])));
