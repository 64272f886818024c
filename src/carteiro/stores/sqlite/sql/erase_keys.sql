-- Drops the keys of a tenant. :tenant
DELETE FROM access_keys
WHERE tenant = :tenant;
