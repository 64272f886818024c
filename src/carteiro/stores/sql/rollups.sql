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

-- name: rollups_minutes
-- The figures of all messages together, by minute; notes are not in them. :since; :before
SELECT at, figures FROM carteiro.rollups
WHERE span = 'minute' AND tenant = '' AND template = '' AND provider = '' AND at >= :since AND at < :before
ORDER BY at;

-- name: rollups_worst
-- The templates that fail most, of those with some messages: the worst of each tenant, then the second of each, and so on.
-- Notes are not in them. :since; :least; :limit
WITH failing AS MATERIALIZED ( -- by the index of failing templates, in no order
    SELECT w.tenant, w.template FROM carteiro.rollups AS w
    WHERE w.span = 'minute' AND w.at >= :since AND w.template > '' AND w.failed > 0
)
SELECT r.tenant, r.template, sum(r.sent)::bigint AS sent, sum(r.failed)::bigint AS failed
FROM (SELECT DISTINCT tenant, template FROM failing) AS f
CROSS JOIN carteiro.rollups AS r
WHERE
    r.span = 'minute' AND r.tenant = f.tenant AND r.template = f.template AND r.provider = ''
    AND r.at >= :since
GROUP BY r.tenant, r.template
HAVING sum(r.failed) > 0 AND sum(r.sent + r.failed) >= :least::bigint
ORDER BY
    row_number() OVER (
        PARTITION BY r.tenant ORDER BY sum(r.failed) * 1.0 / sum(r.sent + r.failed) DESC, r.template
    ),
    sum(r.failed) * 1.0 / sum(r.sent + r.failed) DESC, r.tenant, r.template
LIMIT :limit;

-- name: rollup_take
-- Deletes the oldest notes, and returns them: at least one, and no further one beyond a number of characters. :limit; :size
DELETE FROM carteiro.rollup_notes
WHERE no IN (
    SELECT no
    FROM (
        SELECT no, sum(length(figures)) OVER (ORDER BY no) - length(figures) AS before
        FROM (SELECT no, figures FROM carteiro.rollup_notes ORDER BY no LIMIT :limit) AS o
    ) AS n
    WHERE before < :size
)
RETURNING what, at, figures;

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
