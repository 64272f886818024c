-- name: rollup_attempts
-- The attempts of messages. :numbers = [message no, …]
SELECT e.message_no, e.attempts
FROM json_each(:numbers) AS i CROSS JOIN entries AS e ON e.message_no = i.value;

-- name: rollup_changed
-- Adds a note of changed messages. :rows = [[message no, [[provider, time, figures], …]], …]; :now
INSERT INTO rollup_notes (what, at, figures)
SELECT
    'changed', :now,
    json_group_array(json_array(m.tenant, m.template_type, m.due_at, json(i.value -> 1)))
FROM json_each(:rows) AS i CROSS JOIN messages AS m ON m.no = i.value ->> 0;

-- name: rollup_put
-- Stores figures. :rows = [[span, tenant, template, provider, at, weight, sent, failed, figures], …]
INSERT INTO rollups (span, tenant, template, provider, at, weight, sent, failed, figures)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8
FROM json_each(:rows)
WHERE true
ON CONFLICT (span, tenant, template, provider, at) DO UPDATE
SET weight = excluded.weight, sent = excluded.sent, failed = excluded.failed, figures = excluded.figures;

-- name: rollup_rows
-- The known ones of these rows. :rows = [[span, tenant, template, provider, at], …]
SELECT r.span, r.tenant, r.template, r.provider, r.at, r.figures
FROM json_each(:rows) AS i
CROSS JOIN rollups AS r
    ON r.span = i.value ->> 0 AND r.tenant = i.value ->> 1 AND r.template = i.value ->> 2
    AND r.provider = i.value ->> 3 AND r.at = i.value ->> 4;

-- name: rollup_tenants
-- The known ones of these tenants. :ids = [id, …]
SELECT t.id
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: rollup_trim_templates
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

-- name: rollup_trim_tenants
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
