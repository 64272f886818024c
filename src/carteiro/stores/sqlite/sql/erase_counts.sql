-- Drops what was counted of a tenant. :tenant
DELETE FROM api_counts
WHERE tenant = :tenant;
