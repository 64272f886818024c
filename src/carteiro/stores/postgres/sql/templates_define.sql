-- Adds a version of a template, behind all that were. The caller holds the tenant.
-- $1 tenant; $2 type; $3 subject; $4 html; $5 text; $6 retry preset; $7 now
INSERT INTO carteiro.templates (tenant, type, version, subject, html, text, retry_preset, created_at)
SELECT
    $1::text, $2::text, coalesce(max(n.version), 0) + 1, $3::text, $4::text, $5::text, $6::text, $7::bigint
FROM carteiro.templates AS n
WHERE n.tenant = $1::text AND n.type = $2::text
RETURNING tenant, type, version, subject, html, text, retry_preset, created_at, deleted_at;
