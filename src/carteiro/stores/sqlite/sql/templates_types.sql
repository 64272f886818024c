-- Every type of template that a tenant has, in the order of deletion: whether it is deleted, the bytes of all its versions
-- and of the newest. Reads an index alone, not the texts. :tenant
SELECT t.type, t.deleted_at IS NOT NULL, n.bytes, t.bytes
FROM (SELECT type, max(version) AS version, sum(bytes) AS bytes FROM templates WHERE tenant = :tenant GROUP BY type) AS n
CROSS JOIN templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
ORDER BY t.deleted_at, t.type;
