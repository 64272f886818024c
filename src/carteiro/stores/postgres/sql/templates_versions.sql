-- The versions of a template, the newest first, without what they say. $1 tenant; $2 type; $3 how many
SELECT
    tenant, type, version, subject, html IS NOT NULL, text IS NOT NULL, retry_preset, created_at, deleted_at
FROM carteiro.templates
WHERE tenant = $1::text AND type = $2::text
ORDER BY version DESC
LIMIT $3::bigint;
