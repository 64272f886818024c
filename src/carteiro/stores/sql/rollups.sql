-- name: rollup_any
-- True if there are notes.
SELECT EXISTS (SELECT 1 FROM carteiro.rollup_notes);

-- name: rollup_many
-- True if more notes wait than a number. :most
SELECT EXISTS (SELECT 1 FROM carteiro.rollup_notes ORDER BY no LIMIT 1 OFFSET :most);

-- name: rollup_note
-- Adds a note. :what; :at; :figures
INSERT INTO carteiro.rollup_notes (what, at, figures)
VALUES (:what, :at, :figures);

-- name: rollup_past
-- The minutes or hours of a time. :span; :since; :before
SELECT DISTINCT at FROM carteiro.rollups
WHERE span = :span AND at >= :since AND at < :before;

-- name: rollup_prune
-- Deletes minutes or hours before a moment. :span; :before; :limit
DELETE FROM carteiro.rollups
WHERE (span, tenant, template, provider, at) IN (
    SELECT span, tenant, template, provider, at FROM carteiro.rollups
    WHERE span = :span AND at < :before
    ORDER BY at
    LIMIT :limit
);

-- name: rollups_forget
-- Deletes figures of a tenant. :tenant; :limit
DELETE FROM carteiro.rollups
WHERE (span, tenant, template, provider, at) IN (
    SELECT span, tenant, template, provider, at FROM carteiro.rollups
    WHERE span IN ('minute', 'hour') AND tenant = :tenant
    LIMIT :limit
);

-- name: rollups_minutes
-- The figures of all messages together, by minute; notes are not in them. :since; :before
SELECT at, figures FROM carteiro.rollups
WHERE span = 'minute' AND tenant = '' AND template = '' AND provider = '' AND at >= :since AND at < :before
ORDER BY at;

-- name: rollups_shares
-- Ended messages by minute or hour: of a tenant, and of all with any; their number, the sum of their weights, and the
-- sums of what was served by weight, and of its squares. Notes are not in them. :span; :since; :tenant; :but = a tenant
-- that does not count
SELECT
    s.at,
    CAST(sum(CASE WHEN s.tenant = :tenant THEN s.ended ELSE 0 END) AS bigint),
    CAST(sum(s.ended) AS bigint),
    sum(s.weight), count(*), sum(s.ended / s.weight), sum(s.ended / s.weight * s.ended / s.weight)
FROM (
    SELECT
        r.at, r.tenant, CAST(r.sent + r.failed AS double precision) AS ended,
        CAST(1000000 AS double precision) / t.stride AS weight
    FROM carteiro.rollups AS r JOIN carteiro.tenants AS t ON t.id = r.tenant
    WHERE
        r.span = :span AND r.at >= :since AND r.tenant > '' AND r.template = '' AND r.tenant <> :but
        AND r.sent + r.failed > 0
) AS s
GROUP BY s.at
ORDER BY s.at;

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
-- As `rollups_by_provider`, of the templates of a tenant with the most messages. :span; :tenant; :since; :most
SELECT '' AS what, at, figures, template FROM carteiro.rollups
WHERE
    span = :span AND tenant = :tenant AND at >= :since
    AND template IN (
        SELECT template FROM carteiro.rollups
        WHERE span = :span AND tenant = :tenant AND template > '' AND at >= :since
        GROUP BY template
        ORDER BY sum(weight) DESC, template
        LIMIT :most
    )
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

-- name: rollup_attempts (sqlite)
-- The attempts of messages, and the failure that the last one is a retry of. :numbers = [message no, …]
SELECT e.message_no, e.attempts, e.retry_of
FROM json_each(:numbers) AS i CROSS JOIN entries AS e ON e.message_no = i.value;

-- name: rollup_changed (sqlite)
-- Adds a note of changed messages. :rows = [[message no, [[provider, time, figures, …], …]], …]; :now
INSERT INTO rollup_notes (what, at, figures)
SELECT
    'changed', :now,
    json_group_array(json_array(m.tenant, m.template_type, m.due_at, json(i.value -> 1)))
FROM json_each(:rows) AS i CROSS JOIN messages AS m ON m.no = i.value ->> 0;

-- name: rollup_put (sqlite)
-- Stores figures. :rows = [[span, tenant, template, provider, at, weight, sent, failed, figures], …]
INSERT INTO rollups (span, tenant, template, provider, at, weight, sent, failed, figures)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8
FROM json_each(:rows)
WHERE true
ON CONFLICT (span, tenant, template, provider, at) DO UPDATE
SET weight = excluded.weight, sent = excluded.sent, failed = excluded.failed, figures = excluded.figures;

-- name: rollup_put (postgres)
-- Stores figures. :rows = [[span, tenant, template, provider, at, weight, sent, failed, figures], …]
INSERT INTO carteiro.rollups (span, tenant, template, provider, at, weight, sent, failed, figures)
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::bigint[], :rows_5::bigint[],
    :rows_6::bigint[], :rows_7::bigint[], :rows_8::text[]
)
ON CONFLICT (span, tenant, template, provider, at) DO UPDATE
SET weight = excluded.weight, sent = excluded.sent, failed = excluded.failed, figures = excluded.figures;

-- name: rollup_rows (sqlite)
-- The known ones of these rows. :rows = [[span, tenant, template, provider, at], …]
SELECT r.span, r.tenant, r.template, r.provider, r.at, r.figures
FROM json_each(:rows) AS i
CROSS JOIN rollups AS r
    ON r.span = i.value ->> 0 AND r.tenant = i.value ->> 1 AND r.template = i.value ->> 2
    AND r.provider = i.value ->> 3 AND r.at = i.value ->> 4;

-- name: rollup_rows (postgres)
-- The known ones of these rows. :rows = [[span, tenant, template, provider, at], …]
SELECT r.span, r.tenant, r.template, r.provider, r.at, r.figures
FROM unnest(:rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::bigint[])
    AS i (span, tenant, template, provider, at)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.rollups AS f
    WHERE
        f.span = i.span AND f.tenant = i.tenant AND f.template = i.template AND f.provider = i.provider
        AND f.at = i.at
    OFFSET 0
) AS r;

-- name: rollup_tenants (sqlite)
-- The known ones of these tenants. :ids = [id, …]
SELECT t.id
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: rollup_tenants (postgres)
-- The known ones of these tenants; none is erased before the transaction ends. :ids = [id, …]
SELECT id FROM carteiro.tenants
WHERE id = ANY (:ids::text[])
ORDER BY id
FOR KEY SHARE;

-- name: rollup_trim_templates (sqlite)
-- Keeps the templates with the most messages: the first of each tenant, then the second of each. The
-- primary key would read all minutes. :span; :at; :most
DELETE FROM rollups
WHERE
    span = :span AND at = :at AND template > ''
    AND (tenant, template) NOT IN (
        SELECT tenant, template FROM rollups INDEXED BY rollups_by_age
        WHERE span = :span AND at = :at AND template > ''
        ORDER BY row_number() OVER (PARTITION BY tenant ORDER BY weight DESC, template), weight DESC, tenant
        LIMIT :most
    );

-- name: rollup_trim_templates (postgres)
-- Keeps the templates with the most messages: the first of each tenant, then the second of each. :span; :at; :most
DELETE FROM carteiro.rollups
WHERE
    span = :span AND at = :at AND template > ''
    AND (tenant, template) NOT IN (
        SELECT tenant, template FROM carteiro.rollups
        WHERE span = :span AND at = :at AND template > ''
        ORDER BY row_number() OVER (PARTITION BY tenant ORDER BY weight DESC, template), weight DESC, tenant
        LIMIT :most
    );

-- name: rollup_trim_tenants (sqlite)
-- Keeps the tenants with the most messages. :span; :at; :most
DELETE FROM rollups
WHERE
    span = :span AND at = :at AND tenant > '' AND template = ''
    AND tenant NOT IN (
        SELECT tenant FROM rollups INDEXED BY rollups_by_age
        WHERE span = :span AND at = :at AND tenant > '' AND template = ''
        ORDER BY weight DESC, tenant
        LIMIT :most
    );

-- name: rollup_trim_tenants (postgres)
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

-- name: rollups_worst (sqlite)
-- The templates that fail most, of those with some messages: the worst of each tenant, then the second of each, and so on.
-- Notes are not in them. :since; :least; :limit
WITH failing AS MATERIALIZED ( -- by the index of failing templates, in no order
    SELECT w.tenant, w.template FROM rollups AS w
    WHERE w.span = 'minute' AND w.at >= :since AND w.template > '' AND w.failed > 0
)
SELECT r.tenant, r.template, sum(r.sent) AS sent, sum(r.failed) AS failed
FROM (SELECT DISTINCT tenant, template FROM failing) AS f
CROSS JOIN rollups AS r
WHERE
    r.span = 'minute' AND r.tenant = f.tenant AND r.template = f.template AND r.provider = ''
    AND r.at >= :since
GROUP BY r.tenant, r.template
HAVING sum(r.failed) > 0 AND sum(r.sent + r.failed) >= :least
ORDER BY
    row_number() OVER (
        PARTITION BY r.tenant ORDER BY sum(r.failed) * 1.0 / sum(r.sent + r.failed) DESC, r.template
    ),
    sum(r.failed) * 1.0 / sum(r.sent + r.failed) DESC, r.tenant, r.template
LIMIT :limit;

-- name: rollups_worst (postgres)
-- As on SQLite. The planner may have no statistics, as after a restore: so it has no choice but to read each failing template by
-- its key. :since; :least; :limit
WITH failing AS MATERIALIZED ( -- by the index of failing templates, in no order
    SELECT w.tenant, w.template FROM carteiro.rollups AS w
    WHERE w.span = 'minute' AND w.at >= :since AND w.template > '' AND w.failed > 0
)
SELECT f.tenant, f.template, s.sent::bigint, s.failed::bigint
FROM (SELECT DISTINCT tenant, template FROM failing) AS f
CROSS JOIN LATERAL (
    SELECT sum(r.sent) AS sent, sum(r.failed) AS failed
    FROM carteiro.rollups AS r
    WHERE
        r.span = 'minute' AND r.tenant = f.tenant AND r.template = f.template AND r.provider = ''
        AND r.at >= :since
    OFFSET 0
) AS s
WHERE s.failed > 0 AND s.sent + s.failed >= :least::bigint
ORDER BY
    row_number() OVER (
        PARTITION BY f.tenant ORDER BY s.failed * 1.0 / (s.sent + s.failed) DESC, f.template
    ),
    s.failed * 1.0 / (s.sent + s.failed) DESC, f.tenant, f.template
LIMIT :limit;
