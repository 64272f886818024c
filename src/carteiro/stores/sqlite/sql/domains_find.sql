-- The tenants that claimed these domains. :domains
SELECT domain, tenant
FROM sender_domains
WHERE domain IN (SELECT value FROM json_each(:domains))
ORDER BY domain;
