-- name: failure_counts_drop
-- Deletes the hours of groups. :ids = [group id, …]
DELETE FROM carteiro.failure_counts
WHERE group_id = ANY (:ids::text[]);

-- name: failure_counts_put
-- Stores hours of groups. :rows = [[group id, at, tenant, attempts, deaths, first_at, last_at, samples], …]
INSERT INTO carteiro.failure_counts (group_id, at, tenant, attempts, deaths, first_at, last_at, samples)
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::bigint[], :rows_2::text[], :rows_3::bigint[], :rows_4::bigint[], :rows_5::bigint[],
    :rows_6::bigint[], :rows_7::text[]
)
ON CONFLICT (group_id, at, tenant) DO UPDATE
SET attempts = excluded.attempts, deaths = excluded.deaths, first_at = excluded.first_at, last_at = excluded.last_at,
    samples = excluded.samples;

-- name: failure_counts_these
-- The known ones of these hours. :rows = [[group id, at, tenant], …]
SELECT c.group_id, c.at, c.tenant, c.attempts, c.deaths, c.first_at, c.last_at, c.samples
FROM unnest(:rows_0::text[], :rows_1::bigint[], :rows_2::text[]) AS i (group_id, at, tenant)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.failure_counts AS f
    WHERE f.group_id = i.group_id AND f.at = i.at AND f.tenant = i.tenant
    OFFSET 0
) AS c;

-- name: failure_counts_trim
-- Keeps the tenants with the most failures of each of these hours. :rows = [[group id, at], …]; :most
DELETE FROM carteiro.failure_counts AS d
USING (
    SELECT
        c.group_id, c.at, c.tenant,
        row_number() OVER (PARTITION BY c.group_id, c.at ORDER BY c.deaths DESC, c.attempts DESC, c.tenant) AS place
    FROM unnest(:rows_0::text[], :rows_1::bigint[]) AS i (group_id, at)
    CROSS JOIN LATERAL (
        SELECT * FROM carteiro.failure_counts AS f
        WHERE f.group_id = i.group_id AND f.at = i.at AND f.tenant > ''
        OFFSET 0
    ) AS c
) AS t
WHERE t.place > :most AND d.group_id = t.group_id AND d.at = t.at AND d.tenant = t.tenant;

-- name: failure_groups_put
-- Stores groups. :rows = [[id, provider, rule, error, reason, code, category, scope, state, first_seen, opened_at, last_seen,
-- resolved_at, attempts, deaths], …]
INSERT INTO carteiro.failure_groups ({failure_group})
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[], :rows_6::text[],
    :rows_7::text[], :rows_8::text[], :rows_9::bigint[], :rows_10::bigint[], :rows_11::bigint[], :rows_12::bigint[],
    :rows_13::bigint[], :rows_14::bigint[]
)
ON CONFLICT (id) DO UPDATE
SET code = excluded.code, category = excluded.category, scope = excluded.scope, state = excluded.state,
    first_seen = excluded.first_seen, opened_at = excluded.opened_at, last_seen = excluded.last_seen,
    resolved_at = excluded.resolved_at, attempts = excluded.attempts, deaths = excluded.deaths;

-- name: failure_groups_these
-- The known ones of these groups. :ids = [group id, …]
SELECT {failure_group}
FROM carteiro.failure_groups
WHERE id = ANY (:ids::text[]);
