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
