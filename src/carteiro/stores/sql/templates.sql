-- name: templates_delete
-- Deletes a template: its newest version has the time. :tenant; :type; :now
UPDATE carteiro.templates
SET deleted_at = :now
WHERE
    tenant = :tenant AND type = :type AND deleted_at IS NULL
    AND version = (SELECT max(n.version) FROM carteiro.templates AS n WHERE n.tenant = :tenant AND n.type = :type);

-- name: templates_find
-- One version of a template; without :version the newest, unless it is deleted. :tenant; :type; :version or null
SELECT
    tenant, type, version, subject, html, text, retry_preset, one_click_unsubscribe, automatic_redrive,
    created_at, deleted_at
FROM carteiro.templates
WHERE
    tenant = :tenant AND type = :type
    AND version = coalesce(
        :version::bigint,
        (SELECT max(n.version) FROM carteiro.templates AS n WHERE n.tenant = :tenant AND n.type = :type)
    )
    AND (:version::bigint IS NOT NULL OR deleted_at IS NULL);

-- name: templates_forget_versions
-- Deletes the versions of a template up to one. The caller holds the tenant. :tenant; :type; :last = the newest to delete
DELETE FROM carteiro.templates
WHERE tenant = :tenant AND type = :type AND version <= :last;
