-- Every type of template that a tenant has and whether it is deleted, in the order of deletion. :tenant
SELECT t.type, t.deleted_at IS NOT NULL
FROM (SELECT type, max(version) AS version FROM templates WHERE tenant = :tenant GROUP BY type) AS n
CROSS JOIN templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
ORDER BY t.deleted_at, t.type;
