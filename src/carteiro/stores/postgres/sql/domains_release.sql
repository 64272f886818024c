-- These tenants claim no domain any more. The caller holds the lock of the ring. $1 tenants
DELETE FROM carteiro.sender_domains
WHERE tenant = ANY ($1::text[]);
