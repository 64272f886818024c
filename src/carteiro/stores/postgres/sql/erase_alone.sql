-- Holds a tenant, so that nothing can be added to it, unless somebody adds to it right now. $1 tenant
SELECT true FROM carteiro.tenants
WHERE id = $1::text
FOR UPDATE SKIP LOCKED;
