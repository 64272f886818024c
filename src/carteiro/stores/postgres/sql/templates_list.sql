-- The newest version of each template of a tenant that is not deleted, without what it says. $1 tenant; $2 how many
SELECT
    t.tenant, t.type, t.version, t.subject, t.html IS NOT NULL, t.text IS NOT NULL, t.retry_preset, t.created_at,
    t.deleted_at
FROM (SELECT type, max(version) AS version FROM carteiro.templates WHERE tenant = $1::text GROUP BY type) AS n
INNER JOIN carteiro.templates AS t ON t.tenant = $1::text AND t.type = n.type AND t.version = n.version
WHERE t.deleted_at IS NULL
ORDER BY t.type
LIMIT $2::bigint;
