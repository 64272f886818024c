-- The next domains of tenants. :after = [domain]
SELECT domain, tenant
FROM sender_domains
WHERE domain > (:after ->> 0)
ORDER BY domain;
