-- The versions of a template, the newest first, without what they say (`typeof`: see templates_list).
-- :tenant; :type; :most = how many
SELECT
    tenant, type, version, subject, typeof(html) <> 'null', typeof(text) <> 'null', retry_preset, created_at, deleted_at
FROM templates
WHERE tenant = :tenant AND type = :type
ORDER BY version DESC
LIMIT :most;
