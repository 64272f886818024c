-- name: suppressions_count
-- How many records a tenant has, as far as it matters. The caller holds the tenant. $1 tenant; $2 enough to know
SELECT count(*) FROM (SELECT FROM carteiro.suppressions WHERE tenant = $1::text LIMIT $2::bigint) AS kept;

-- name: suppressions_find
-- Those of the addresses that must not be written to. Arrays: $1 tenant; $2 key; and $3 now
SELECT i.tenant, i.key
FROM unnest($1::text[], $2::text[]) AS i (tenant, key)
CROSS JOIN LATERAL (
    SELECT FROM carteiro.suppressions AS s
    WHERE
        s.tenant = i.tenant AND s.key = i.key AND s.is_active
        AND (s.expires_at IS NULL OR s.expires_at > $3::bigint)
    LIMIT 1
) AS s;

-- name: suppressions_known
-- The records of addresses. $1 tenant; $2 keys
SELECT s.key, s.reason, s.address, s.created_at, s.expires_at, s.is_active, s.bounces
FROM unnest($2::text[]) AS i (key)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.suppressions AS n WHERE n.tenant = $1::text AND n.key = i.key OFFSET 0
) AS s;

-- name: suppressions_list
-- The records of a tenant after a place, newest first. $1 tenant; $2 now; $3 at; $4 place; $5 limit
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM carteiro.suppressions
WHERE
    tenant = $1::text AND (created_at, key || reason) < ($3::bigint, $4::text)
    AND (expires_at IS NULL OR expires_at > $2::bigint)
ORDER BY created_at DESC, key || reason DESC
LIMIT $5::bigint;

-- name: suppressions_list_of_key
-- The records of one address after a place, newest first. $1 tenant; $2 now; $3 at; $4 place; $5 limit; $6 key
SELECT key, reason, address, created_at, expires_at, is_active, bounces
FROM carteiro.suppressions
WHERE
    tenant = $1::text AND key = $6::text AND (created_at, key || reason) < ($3::bigint, $4::text)
    AND (expires_at IS NULL OR expires_at > $2::bigint)
ORDER BY created_at DESC, key || reason DESC
LIMIT $5::bigint;

-- name: suppressions_put
-- Stores records of addresses. The caller holds the tenant.
-- $1 tenant; arrays: $2 key; $3 reason; $4 address; $5 created_at; $6 expires_at; $7 is_active; $8 bounces
INSERT INTO carteiro.suppressions (tenant, key, reason, address, created_at, expires_at, is_active, bounces)
SELECT $1::text, r.*
FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[], $8::text[]
) AS r
ON CONFLICT (tenant, key, reason) DO UPDATE SET
    address = excluded.address, created_at = excluded.created_at, expires_at = excluded.expires_at,
    is_active = excluded.is_active, bounces = excluded.bounces;

-- name: suppressions_remove
-- Takes the records of addresses away; how many. $1 tenant; $2 keys
WITH gone AS (
    DELETE FROM carteiro.suppressions
    WHERE tenant = $1::text AND key = ANY (ARRAY(SELECT unnest($2::text[])))
    RETURNING 1
)
SELECT count(*) FROM gone;
