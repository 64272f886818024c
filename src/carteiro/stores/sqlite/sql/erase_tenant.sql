-- Drops a tenant. :tenant
DELETE FROM tenants
WHERE id = :tenant;
