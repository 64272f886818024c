-- The newest version of each template of a tenant that is not deleted. :tenant
SELECT t.tenant, t.type, t.version, t.subject, t.html, t.text, t.retry_preset, t.created_at
FROM (SELECT type, max(version) AS version FROM templates WHERE tenant = :tenant GROUP BY type) AS n
CROSS JOIN templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
WHERE t.deleted_at IS NULL
ORDER BY t.type;
