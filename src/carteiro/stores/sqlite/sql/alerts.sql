-- name: alerts_put
-- Stores alerts. :rows = [[name, subject, tenant, state, value, threshold, since, seen_at, changed_at, notice, notice_at, by], …]
INSERT OR REPLACE INTO alerts ({alert})
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11
FROM json_each(:rows);

-- name: notices_put
-- Stores notices, except known ones. :rows = [[id, channel, tenant, at, due_at, tries, error, document], …]
INSERT INTO notices (id, channel, tenant, at, due_at, tries, error, document)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM json_each(:rows)
WHERE true
ON CONFLICT (id, channel) DO NOTHING;
