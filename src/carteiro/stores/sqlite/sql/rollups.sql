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
-- Stores figures. :rows = [[span, tenant, template, provider, at, weight, figures], …]
INSERT INTO rollups (span, tenant, template, provider, at, weight, figures)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
FROM json_each(:rows)
WHERE true
ON CONFLICT (span, tenant, template, provider, at) DO UPDATE
SET weight = excluded.weight, figures = excluded.figures;

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
