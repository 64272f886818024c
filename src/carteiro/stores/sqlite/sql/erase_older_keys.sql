-- Drops the keys of a tenant where an older release kept them. :tenant
DELETE FROM tenant_keys
WHERE tenant = :tenant;
