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
