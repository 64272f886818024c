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
