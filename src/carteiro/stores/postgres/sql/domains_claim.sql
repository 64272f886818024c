-- Domains that nobody has claimed become these tenants'. The caller holds the lock of the ring. Arrays: $1 domains; $2 tenants
INSERT INTO carteiro.sender_domains (domain, tenant)
SELECT c.domain, c.tenant
FROM unnest($1::text[], $2::text[]) AS c (domain, tenant);
