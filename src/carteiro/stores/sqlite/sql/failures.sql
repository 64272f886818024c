-- name: failure_counts_drop
-- Deletes the hours of groups. :ids = [group id, …]
DELETE FROM failure_counts
WHERE group_id IN (SELECT value FROM json_each(:ids));

-- name: failure_counts_put
-- Stores hours of groups. :rows = [[group id, at, tenant, attempts, deaths, first_at, last_at, samples], …]
INSERT OR REPLACE INTO failure_counts (group_id, at, tenant, attempts, deaths, first_at, last_at, samples)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM json_each(:rows);

-- name: failure_counts_these
-- The known ones of these hours. :rows = [[group id, at, tenant], …]
SELECT c.group_id, c.at, c.tenant, c.attempts, c.deaths, c.first_at, c.last_at, c.samples
FROM json_each(:rows) AS i
CROSS JOIN failure_counts AS c
    ON c.group_id = i.value ->> 0 AND c.at = i.value ->> 1 AND c.tenant = i.value ->> 2;

-- name: failure_counts_trim
-- Keeps the tenants with the most failures of each of these hours. :rows = [[group id, at], …]; :most
DELETE FROM failure_counts
WHERE (group_id, at, tenant) IN (
    SELECT group_id, at, tenant
    FROM (
        SELECT
            c.group_id, c.at, c.tenant,
            row_number() OVER (PARTITION BY c.group_id, c.at ORDER BY c.deaths DESC, c.attempts DESC, c.tenant) AS place
        FROM json_each(:rows) AS i
        CROSS JOIN failure_counts AS c ON c.group_id = i.value ->> 0 AND c.at = i.value ->> 1 AND c.tenant > ''
    )
    WHERE place > :most
);

-- name: failure_groups_put
-- Stores groups. :rows = [[id, provider, rule, error, reason, code, category, scope, state, first_seen, opened_at, last_seen,
-- resolved_at, attempts, deaths], …]
INSERT OR REPLACE INTO failure_groups ({failure_group})
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14
FROM json_each(:rows);

-- name: failure_groups_these
-- The known ones of these groups. :ids = [group id, …]
SELECT {failure_group}
FROM failure_groups
WHERE id IN (SELECT value FROM json_each(:ids));
