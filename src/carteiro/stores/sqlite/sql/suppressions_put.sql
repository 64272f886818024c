-- Stores records of addresses. :tenant; :rows = [[key, reason, address, created_at, expires_at, is_active, bounces], …]
INSERT INTO suppressions (tenant, key, reason, address, created_at, expires_at, is_active, bounces)
SELECT
    :tenant, r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6
FROM json_each(:rows) AS r
WHERE true
ON CONFLICT (tenant, key, reason) DO UPDATE SET
    address = excluded.address, created_at = excluded.created_at, expires_at = excluded.expires_at,
    is_active = excluded.is_active, bounces = excluded.bounces;
