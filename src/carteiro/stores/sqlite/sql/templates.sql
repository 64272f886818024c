-- name: templates_define
-- Adds a version of a template, after all others.
-- :tenant; :type; :subject; :html; :text; :retry_preset; :one_click_unsubscribe; :automatic_redrive; :bytes; :now
INSERT INTO templates (
    tenant, type, version, subject, html, text, retry_preset, one_click_unsubscribe, automatic_redrive,
    bytes, created_at
)
SELECT
    :tenant, :type, coalesce(max(version), 0) + 1, :subject, :html, :text, :retry_preset, :one_click_unsubscribe,
    :automatic_redrive, :bytes, :now
FROM templates
WHERE tenant = :tenant AND type = :type
RETURNING tenant, type, version, subject, html, text, retry_preset, one_click_unsubscribe, automatic_redrive,
    created_at, deleted_at;

-- name: templates_forget
-- Deletes templates with all their versions. :tenant; :types = [type, …]
DELETE FROM templates
WHERE tenant = :tenant AND type IN (SELECT value FROM json_each(:types));

-- name: templates_forget_older
-- Deletes all versions of templates except the newest of each. :tenant; :types = [type, …]
DELETE FROM templates
WHERE
    tenant = :tenant AND type IN (SELECT i.value FROM json_each(:types) AS i)
    AND version < (SELECT max(n.version) FROM templates AS n WHERE n.tenant = :tenant AND n.type = templates.type);

-- name: templates_list
-- The newest version of each template of a tenant that is not deleted, without its content. `typeof` reads only the head
-- of a row, where IS NULL would read a long text. :tenant; :most = the maximum
SELECT
    t.tenant, t.type, t.version, t.subject, typeof(t.html) <> 'null', typeof(t.text) <> 'null', t.retry_preset,
    t.one_click_unsubscribe, t.automatic_redrive, t.created_at, t.deleted_at
FROM (SELECT type, max(version) AS version FROM templates WHERE tenant = :tenant GROUP BY type) AS n
CROSS JOIN templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
WHERE t.deleted_at IS NULL
ORDER BY t.type
LIMIT :most;

-- name: templates_types
-- Every type of template that a tenant has, in the order of deletion: whether it is deleted, the bytes of all its versions
-- and of the newest. Reads only an index, not the texts. :tenant
SELECT t.type, t.deleted_at IS NOT NULL, n.bytes, t.bytes
FROM (SELECT type, max(version) AS version, sum(bytes) AS bytes FROM templates WHERE tenant = :tenant GROUP BY type) AS n
CROSS JOIN templates AS t ON t.tenant = :tenant AND t.type = n.type AND t.version = n.version
ORDER BY t.deleted_at, t.type;

-- name: templates_versions
-- The versions of a template, newest first, without their content (`typeof`: see templates_list).
-- :tenant; :type; :most = the maximum
SELECT
    tenant, type, version, subject, typeof(html) <> 'null', typeof(text) <> 'null', retry_preset,
    one_click_unsubscribe, automatic_redrive, created_at, deleted_at
FROM templates
WHERE tenant = :tenant AND type = :type
ORDER BY version DESC
LIMIT :most;
