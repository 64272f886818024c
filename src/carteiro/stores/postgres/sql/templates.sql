-- name: templates_define
-- Adds a version of a template, behind all that were. The caller holds the tenant.
-- $1 tenant; $2 type; $3 subject; $4 html; $5 text; $6 retry preset; $7 now
INSERT INTO carteiro.templates (tenant, type, version, subject, html, text, retry_preset, created_at)
SELECT
    $1::text, $2::text, coalesce(max(n.version), 0) + 1, $3::text, $4::text, $5::text, $6::text, $7::bigint
FROM carteiro.templates AS n
WHERE n.tenant = $1::text AND n.type = $2::text
RETURNING tenant, type, version, subject, html, text, retry_preset, created_at, deleted_at;

-- name: templates_delete
-- Takes a template out of use: its newest version says since when.
-- $1 tenant; $2 type; $3 now
UPDATE carteiro.templates
SET deleted_at = $3::bigint
WHERE
    tenant = $1::text AND type = $2::text AND deleted_at IS NULL
    AND version = (
        SELECT max(n.version) FROM carteiro.templates AS n WHERE n.tenant = $1::text AND n.type = $2::text
    )
RETURNING version;

-- name: templates_find
-- One version of a template; without one named the newest, unless it is deleted. $1 tenant; $2 type; $3 version or null
SELECT tenant, type, version, subject, html, text, retry_preset, created_at, deleted_at
FROM carteiro.templates
WHERE
    tenant = $1::text AND type = $2::text
    AND version = coalesce(
        $3::bigint,
        (SELECT max(n.version) FROM carteiro.templates AS n WHERE n.tenant = $1::text AND n.type = $2::text)
    )
    AND ($3::bigint IS NOT NULL OR deleted_at IS NULL);

-- name: templates_forget
-- Drops templates with all their versions. The caller holds the tenant. $1 tenant; $2 types
DELETE FROM carteiro.templates
WHERE tenant = $1::text AND type = ANY ($2::text[]);

-- name: templates_forget_older
-- Drops all versions of templates but the newest of each. The caller holds the tenant. $1 tenant; $2 types
DELETE FROM carteiro.templates AS t
WHERE
    t.tenant = $1::text AND t.type = ANY ($2::text[])
    AND t.version < (
        SELECT max(n.version) FROM carteiro.templates AS n WHERE n.tenant = $1::text AND n.type = t.type
    );

-- name: templates_forget_versions
-- Drops the versions of a template up to one. The caller holds the tenant. $1 tenant; $2 type; $3 the newest that goes
DELETE FROM carteiro.templates
WHERE tenant = $1::text AND type = $2::text AND version <= $3::bigint;

-- name: templates_list
-- The newest version of each template of a tenant that is not deleted, without what it says. $1 tenant; $2 how many
SELECT
    t.tenant, t.type, t.version, t.subject, t.html IS NOT NULL, t.text IS NOT NULL, t.retry_preset, t.created_at,
    t.deleted_at
FROM (SELECT type, max(version) AS version FROM carteiro.templates WHERE tenant = $1::text GROUP BY type) AS n
INNER JOIN carteiro.templates AS t ON t.tenant = $1::text AND t.type = n.type AND t.version = n.version
WHERE t.deleted_at IS NULL
ORDER BY t.type
LIMIT $2::bigint;

-- name: templates_types
-- Every type of template that a tenant has, in the order of deletion: whether it is deleted, the bytes of all its versions
-- and of the newest. $1 tenant
SELECT t.type, t.deleted_at IS NOT NULL, n.bytes, t.bytes
FROM (
    SELECT type, max(version) AS version, sum(bytes) AS bytes
    FROM carteiro.templates WHERE tenant = $1::text GROUP BY type
) AS n
INNER JOIN carteiro.templates AS t ON t.tenant = $1::text AND t.type = n.type AND t.version = n.version
ORDER BY t.deleted_at, t.type;

-- name: templates_versions
-- The versions of a template, the newest first, without what they say. $1 tenant; $2 type; $3 how many
SELECT
    tenant, type, version, subject, html IS NOT NULL, text IS NOT NULL, retry_preset, created_at, deleted_at
FROM carteiro.templates
WHERE tenant = $1::text AND type = $2::text
ORDER BY version DESC
LIMIT $3::bigint;
