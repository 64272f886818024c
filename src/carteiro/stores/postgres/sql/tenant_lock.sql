-- Holds a tenant until the transaction ends: what is counted of it stays so. Sends of it go on. $1 tenant
SELECT 1 FROM carteiro.tenants
WHERE id = $1::text
FOR NO KEY UPDATE;
