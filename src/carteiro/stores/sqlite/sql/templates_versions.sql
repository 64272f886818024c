-- Every version of a template, the newest first. :tenant; :type
SELECT tenant, type, version, subject, html, text, retry_preset, created_at
FROM templates
WHERE tenant = :tenant AND type = :type
ORDER BY version DESC;
