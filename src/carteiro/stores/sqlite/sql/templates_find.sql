-- One version of a template; without one named the newest, unless it is deleted. :tenant; :type; :version or null
SELECT tenant, type, version, subject, html, text, retry_preset, created_at, deleted_at
FROM templates
WHERE
    tenant = :tenant AND type = :type
    AND version = coalesce(
        :version, (SELECT max(n.version) FROM templates AS n WHERE n.tenant = :tenant AND n.type = :type)
    )
    AND (:version IS NOT NULL OR deleted_at IS NULL);
