-- name: templates_define
-- Adds a version of a template, after all others. The caller holds the tenant.
-- :tenant; :type; :subject; :html; :text; :retry_preset; :one_click_unsubscribe; :automatic_redrive; :now
INSERT INTO carteiro.templates (
    tenant, type, version, subject, html, text, retry_preset, one_click_unsubscribe, automatic_redrive,
    created_at
)
SELECT
    :tenant::text, :type::text, coalesce(max(n.version), 0) + 1, :subject::text, :html::text, :text::text,
    :retry_preset::text, :one_click_unsubscribe::boolean, :automatic_redrive::boolean, :now::bigint
FROM carteiro.templates AS n
WHERE n.tenant = :tenant::text AND n.type = :type::text
RETURNING tenant, type, version, subject, html, text, retry_preset, one_click_unsubscribe, automatic_redrive,
    created_at, deleted_at;

-- name: templates_forget
-- Deletes templates with all their versions. The caller holds the tenant. :tenant; :types = [type, …]
DELETE FROM carteiro.templates
WHERE tenant = :tenant AND type = ANY (:types::text[]);

-- name: templates_forget_older
-- Deletes all versions of templates except the newest of each. The caller holds the tenant. :tenant; :types = [type, …]
DELETE FROM carteiro.templates AS t
WHERE
    t.tenant = :tenant AND t.type = ANY (:types::text[])
    AND t.version < (SELECT max(n.version) FROM carteiro.templates AS n WHERE n.tenant = :tenant AND n.type = t.type);

-- name: templates_list
-- The newest version of each template of a tenant that is not deleted, without its content. :tenant; :most = the maximum
SELECT
    t.tenant, t.type, t.version, t.subject, t.html IS NOT NULL, t.text IS NOT NULL, t.retry_preset,
    t.one_click_unsubscribe, t.automatic_redrive, t.created_at, t.deleted_at
FROM (SELECT type, max(version) AS version FROM carteiro.templates WHERE tenant = :tenant GROUP BY type) AS n
INNER JOIN carteiro.templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
WHERE t.deleted_at IS NULL
ORDER BY t.type
LIMIT :most;

-- name: templates_types
-- Every type of template that a tenant has, in the order of deletion: whether it is deleted, the bytes of all its versions
-- and of the newest. :tenant
SELECT t.type, t.deleted_at IS NOT NULL, n.bytes, t.bytes
FROM (
    SELECT type, max(version) AS version, sum(bytes) AS bytes
    FROM carteiro.templates WHERE tenant = :tenant GROUP BY type
) AS n
INNER JOIN carteiro.templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
ORDER BY t.deleted_at, t.type;

-- name: templates_versions
-- The versions of a template, newest first, without their content. :tenant; :type; :most = the maximum
SELECT
    tenant, type, version, subject, html IS NOT NULL, text IS NOT NULL, retry_preset,
    one_click_unsubscribe, automatic_redrive, created_at, deleted_at
FROM carteiro.templates
WHERE tenant = :tenant AND type = :type
ORDER BY version DESC
LIMIT :most;
