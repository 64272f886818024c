-- Domains that nobody has claimed become these tenants'. :claims = [[domain, tenant], ...]
INSERT INTO sender_domains (domain, tenant)
SELECT value ->> 0, value ->> 1
FROM json_each(:claims);
