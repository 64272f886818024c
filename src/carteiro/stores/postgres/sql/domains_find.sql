-- The tenants that claimed these domains. $1 domains
SELECT domain, tenant
FROM carteiro.sender_domains
WHERE domain = ANY ($1::text[])
ORDER BY domain;
