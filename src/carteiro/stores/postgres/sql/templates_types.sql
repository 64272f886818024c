-- Every type of template that a tenant has and whether it is deleted, in the order of deletion. $1 tenant
SELECT t.type, t.deleted_at IS NOT NULL
FROM (SELECT type, max(version) AS version FROM carteiro.templates WHERE tenant = $1::text GROUP BY type) AS n
INNER JOIN carteiro.templates AS t ON t.tenant = $1::text AND t.type = n.type AND t.version = n.version
ORDER BY t.deleted_at, t.type;
