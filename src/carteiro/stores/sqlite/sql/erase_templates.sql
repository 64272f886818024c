-- Drops the templates of a tenant. :tenant
DELETE FROM templates
WHERE tenant = :tenant;
