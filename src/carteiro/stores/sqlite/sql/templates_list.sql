-- The newest version of each template of a tenant that is not deleted, without what it says. `typeof` looks at the head of
-- a row alone, where IS NULL would read a long text. :tenant; :most = how many
SELECT
    t.tenant, t.type, t.version, t.subject, typeof(t.html) <> 'null', typeof(t.text) <> 'null', t.retry_preset,
    t.created_at, t.deleted_at
FROM (SELECT type, max(version) AS version FROM templates WHERE tenant = :tenant GROUP BY type) AS n
CROSS JOIN templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
WHERE t.deleted_at IS NULL
ORDER BY t.type
LIMIT :most;
