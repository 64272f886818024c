-- Whether any key speaks for a tenant. :tenant
SELECT EXISTS (SELECT 1 FROM tenant_keys WHERE tenant = :tenant);
