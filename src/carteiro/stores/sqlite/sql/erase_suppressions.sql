-- Drops whom a tenant must not write to. :tenant; :limit
DELETE FROM suppressions
WHERE (tenant, key, reason) IN (
    SELECT s.tenant, s.key, s.reason FROM suppressions AS s WHERE s.tenant = :tenant LIMIT :limit
);
