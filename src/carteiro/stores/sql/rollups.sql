-- name: rollup_any
-- True if there are notes.
SELECT EXISTS (SELECT 1 FROM carteiro.rollup_notes);

-- name: rollup_note
-- Adds a note. :what; :at; :figures
INSERT INTO carteiro.rollup_notes (what, at, figures)
VALUES (:what, :at, :figures);

-- name: rollup_past
-- The last minute or hour before a moment. :span; :before
SELECT max(at) FROM carteiro.rollups
WHERE span = :span AND at < :before;

-- name: rollup_prune
-- Deletes minutes or hours before a moment. :span; :before; :limit
DELETE FROM carteiro.rollups
WHERE (span, tenant, template, provider, at) IN (
    SELECT span, tenant, template, provider, at FROM carteiro.rollups
    WHERE span = :span AND at < :before
    ORDER BY at
    LIMIT :limit
);

-- name: rollup_take
-- Deletes the oldest notes, and returns them. :limit
DELETE FROM carteiro.rollup_notes
WHERE no IN (SELECT no FROM carteiro.rollup_notes ORDER BY no LIMIT :limit)
RETURNING what, at, figures;

-- name: rollup_trim_templates
-- Keeps the templates with the most messages. :span; :at; :most
DELETE FROM carteiro.rollups
WHERE
    span = :span AND at = :at AND template > ''
    AND (tenant, template) NOT IN (
        SELECT tenant, template FROM carteiro.rollups
        WHERE span = :span AND at = :at AND template > ''
        ORDER BY weight DESC, tenant, template
        LIMIT :most
    );

-- name: rollup_trim_tenants
-- Keeps the tenants with the most messages. :span; :at; :most
DELETE FROM carteiro.rollups
WHERE
    span = :span AND at = :at AND tenant > '' AND template = ''
    AND tenant NOT IN (
        SELECT tenant FROM carteiro.rollups
        WHERE span = :span AND at = :at AND tenant > '' AND template = ''
        ORDER BY weight DESC, tenant
        LIMIT :most
    );

-- name: rollups_by_provider
-- The figures of providers, and all notes: in one statement, so that a note is in only one of them. :span; :since
SELECT '' AS what, at, figures, provider FROM carteiro.rollups
WHERE span = :span AND tenant = '' AND template = '' AND provider > '' AND at >= :since
UNION ALL
SELECT what, at, figures, '' FROM carteiro.rollup_notes
WHERE at >= :since;

-- name: rollups_by_template
-- As `rollups_by_provider`, of the templates of a tenant. :span; :tenant; :since
SELECT '' AS what, at, figures, template FROM carteiro.rollups
WHERE span = :span AND tenant = :tenant AND template > '' AND at >= :since
UNION ALL
SELECT what, at, figures, '' FROM carteiro.rollup_notes
WHERE at >= :since;

-- name: rollups_by_tenant
-- As `rollups_by_provider`, of tenants. :span; :since
SELECT '' AS what, at, figures, tenant FROM carteiro.rollups
WHERE span = :span AND at >= :since AND tenant > '' AND template = ''
UNION ALL
SELECT what, at, figures, '' FROM carteiro.rollup_notes
WHERE at >= :since;

-- name: rollups_total
-- As `rollups_by_provider`, of a tenant, or of all ('') together. :span; :tenant; :since
SELECT '' AS what, at, figures, '' FROM carteiro.rollups
WHERE span = :span AND tenant = :tenant AND template = '' AND provider = '' AND at >= :since
UNION ALL
SELECT what, at, figures, '' FROM carteiro.rollup_notes
WHERE at >= :since;
