-- Every type of template that a tenant has, in the order of deletion: whether it is deleted, the bytes of all its versions
-- and of the newest. $1 tenant
SELECT t.type, t.deleted_at IS NOT NULL, n.bytes, t.bytes
FROM (
    SELECT type, max(version) AS version, sum(bytes) AS bytes
    FROM carteiro.templates WHERE tenant = $1::text GROUP BY type
) AS n
INNER JOIN carteiro.templates AS t ON t.tenant = $1::text AND t.type = n.type AND t.version = n.version
ORDER BY t.deleted_at, t.type;
