-- The next versions of templates. :after = [tenant, type, version]
SELECT tenant, type, version, subject, html, text, retry_preset, created_at, deleted_at
FROM templates
WHERE (tenant, type, version) > (:after ->> 0, :after ->> 1, :after ->> 2)
ORDER BY tenant, type, version;
