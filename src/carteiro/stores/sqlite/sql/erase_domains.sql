-- Drops the claims of a tenant. :tenant
DELETE FROM sender_domains
WHERE tenant = :tenant;
