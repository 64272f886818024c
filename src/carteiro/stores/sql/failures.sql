-- name: failure_counts_of_group
-- Hours of a group, and all notes of failures: in one statement, so that a note is in only one of them. :group; :since
SELECT 'count' AS what, group_id, at, tenant, attempts, deaths, first_at, last_at, samples
FROM carteiro.failure_counts
WHERE group_id = :group AND at >= :since
UNION ALL
SELECT what, '', at, '', 0, 0, 0, 0, figures FROM carteiro.rollup_notes
WHERE what = 'changed';

-- name: failure_counts_of_tenant
-- As `failure_counts_of_group`: all hours together, of each group of a tenant. :tenant
SELECT 'count' AS what, group_id, at, tenant, attempts, deaths, first_at, last_at, samples
FROM carteiro.failure_counts
WHERE tenant = :tenant AND tenant > '' AND at = 0
UNION ALL
SELECT what, '', at, '', 0, 0, 0, 0, figures FROM carteiro.rollup_notes
WHERE what = 'changed';

-- name: failure_counts_forget
-- Deletes hours of a tenant. :tenant; :limit
DELETE FROM carteiro.failure_counts
WHERE (group_id, at, tenant) IN (
    SELECT group_id, at, tenant FROM carteiro.failure_counts
    WHERE tenant = :tenant
    LIMIT :limit
);

-- name: failure_counts_prune
-- Deletes hours of groups before a moment, and the sums of tenants without a failure since. :before; :limit
DELETE FROM carteiro.failure_counts
WHERE (group_id, at, tenant) IN (
    SELECT group_id, at, tenant FROM carteiro.failure_counts
    WHERE CASE at WHEN 0 THEN last_at ELSE at END < :before
    ORDER BY CASE at WHEN 0 THEN last_at ELSE at END
    LIMIT :limit
);

-- name: failure_groups_list
-- All groups, and all notes of failures, as in `failure_counts_of_group`.
SELECT
    'group' AS what, {failure_group}
FROM carteiro.failure_groups
UNION ALL
SELECT what, figures, '', '', '', '', '', '', '', '', at, 0, 0, 0, 0, 0 FROM carteiro.rollup_notes
WHERE what = 'changed';

-- name: failure_groups_prune
-- Deletes groups that were last seen before a moment. :before
DELETE FROM carteiro.failure_groups
WHERE last_seen < :before;

-- name: failure_groups_trim
-- Deletes open groups above the most, and others above the most, with their hours. Of open ones, tenants take turns: a group
-- is of the tenant that failed first in it. Each keeps first those with dead letters, then the last seen of each rule, then
-- the second of each. Of the others, which people have dealt with, the last seen are kept. Returns them. :most
DELETE FROM carteiro.failure_groups
WHERE id IN (
    SELECT id
    FROM (
        SELECT id, row_number() OVER (PARTITION BY is_open ORDER BY turn, last_seen DESC, id) AS place
        FROM (
            SELECT
                id, last_seen, is_open,
                CASE WHEN is_open THEN row_number() OVER (
                    PARTITION BY tenant, is_open ORDER BY has_dead DESC, place_in_rule, last_seen DESC, id
                ) END AS turn
            FROM (
                SELECT
                    id, last_seen, tenant, is_open, has_dead,
                    row_number() OVER (
                        PARTITION BY tenant, is_open, provider, rule ORDER BY has_dead DESC, last_seen DESC, id
                    ) AS place_in_rule
                FROM (
                    SELECT
                        g.*, g.state = 'open' AS is_open, g.deaths > 0 AS has_dead,
                        (
                            SELECT c.tenant FROM carteiro.failure_counts AS c
                            WHERE
                                c.group_id = g.id AND c.tenant > ''
                                AND c.at = (
                                    SELECT min(h.at) FROM carteiro.failure_counts AS h WHERE h.group_id = g.id AND h.at > 0
                                )
                            ORDER BY c.first_at, c.tenant
                            LIMIT 1
                        ) AS tenant
                    FROM carteiro.failure_groups AS g
                    WHERE (SELECT count(*) FROM carteiro.failure_groups) > :most
                ) AS f
            ) AS r
        ) AS t
    ) AS p
    WHERE place > :most
)
RETURNING id;

-- name: failure_histories
-- The histories of tenants with some results, those with the most first. :least; :limit
SELECT group_id, tenant, history FROM carteiro.failure_counts
WHERE retried > 0 AND retried >= :least AND tenant > ''
ORDER BY retried DESC
LIMIT :limit;

-- name: failure_histories_of_all (sqlite)
-- The histories of groups, of all tenants together (an empty one) and of each. :least; :groups = [group id, …] or empty for all
SELECT c.group_id, c.tenant, c.history
FROM (
    SELECT group_id FROM failure_counts
    WHERE
        retried > 0 AND retried >= :least AND tenant = ''
        AND (:groups = '[]' OR group_id IN (SELECT value FROM json_each(:groups)))
) AS g
CROSS JOIN failure_counts AS c ON c.group_id = g.group_id AND c.at = 0 AND c.retried > 0;

-- name: failure_histories_of_all (postgres)
-- The histories of groups, of all tenants together (an empty one) and of each. :least; :groups = [group id, …] or empty for all
SELECT c.group_id, c.tenant, c.history
FROM carteiro.failure_counts AS g
JOIN carteiro.failure_counts AS c ON c.group_id = g.group_id AND c.at = 0 AND c.retried > 0
WHERE
    g.retried > 0 AND g.retried >= :least AND g.tenant = ''
    AND (cardinality(:groups::text[]) = 0 OR g.group_id = ANY (:groups::text[]));

-- name: failure_counts_drop (sqlite)
-- Deletes the hours of groups. :ids = [group id, …]
DELETE FROM failure_counts
WHERE group_id IN (SELECT value FROM json_each(:ids));

-- name: failure_counts_drop (postgres)
-- Deletes the hours of groups. :ids = [group id, …]
DELETE FROM carteiro.failure_counts
WHERE group_id = ANY (:ids::text[]);

-- name: failure_counts_put (sqlite)
-- Stores hours of groups. :rows = [[group id, at, tenant, attempts, deaths, first_at, last_at, samples, retried, history], …]
INSERT OR REPLACE INTO failure_counts (
    group_id, at, tenant, attempts, deaths, first_at, last_at, samples, retried, history
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9
FROM json_each(:rows);

-- name: failure_counts_put (postgres)
-- Stores hours of groups. :rows = [[group id, at, tenant, attempts, deaths, first_at, last_at, samples, retried, history], …]
INSERT INTO carteiro.failure_counts (
    group_id, at, tenant, attempts, deaths, first_at, last_at, samples, retried, history
)
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::bigint[], :rows_2::text[], :rows_3::bigint[], :rows_4::bigint[], :rows_5::bigint[],
    :rows_6::bigint[], :rows_7::text[], :rows_8::bigint[], :rows_9::text[]
)
ON CONFLICT (group_id, at, tenant) DO UPDATE
SET attempts = excluded.attempts, deaths = excluded.deaths, first_at = excluded.first_at, last_at = excluded.last_at,
    samples = excluded.samples, retried = excluded.retried, history = excluded.history;

-- name: failure_counts_lose (sqlite)
-- Deletes some counts. :rows = [[group id, at, tenant], …]
DELETE FROM failure_counts
WHERE (group_id, at, tenant) IN (
    SELECT c.group_id, c.at, c.tenant
    FROM json_each(:rows) AS i
    CROSS JOIN failure_counts AS c
        ON c.group_id = i.value ->> 0 AND c.at = i.value ->> 1 AND c.tenant = i.value ->> 2
);

-- name: failure_counts_lose (postgres)
-- Deletes some counts. :rows = [[group id, at, tenant], …]
DELETE FROM carteiro.failure_counts AS c
USING unnest(:rows_0::text[], :rows_1::bigint[], :rows_2::text[]) AS i (group_id, at, tenant)
WHERE c.group_id = i.group_id AND c.at = i.at AND c.tenant = i.tenant;

-- name: failure_counts_these (sqlite)
-- The known counts of these hours, and of these tenants over all hours. :hours = [[group id, at], …]; :totals = [[group id, tenant], …]
SELECT c.group_id, c.at, c.tenant, c.attempts, c.deaths, c.first_at, c.last_at, c.samples, c.retried, c.history
FROM json_each(:hours) AS i
CROSS JOIN failure_counts AS c ON c.group_id = i.value ->> 0 AND c.at = i.value ->> 1
UNION ALL
SELECT c.group_id, c.at, c.tenant, c.attempts, c.deaths, c.first_at, c.last_at, c.samples, c.retried, c.history
FROM json_each(:totals) AS i
CROSS JOIN failure_counts AS c ON c.group_id = i.value ->> 0 AND c.at = 0 AND c.tenant = i.value ->> 1;

-- name: failure_counts_these (postgres)
-- The known counts of these hours, and of these tenants over all hours. :hours = [[group id, at], …]; :totals = [[group id, tenant], …]
SELECT c.group_id, c.at, c.tenant, c.attempts, c.deaths, c.first_at, c.last_at, c.samples, c.retried, c.history
FROM unnest(:hours_0::text[], :hours_1::bigint[]) AS i (group_id, at)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.failure_counts AS f
    WHERE f.group_id = i.group_id AND f.at = i.at
    OFFSET 0
) AS c
UNION ALL
SELECT c.group_id, c.at, c.tenant, c.attempts, c.deaths, c.first_at, c.last_at, c.samples, c.retried, c.history
FROM unnest(:totals_0::text[], :totals_1::text[]) AS i (group_id, tenant)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.failure_counts AS f
    WHERE f.group_id = i.group_id AND f.at = 0 AND f.tenant = i.tenant
    OFFSET 0
) AS c;

-- name: failure_groups_put (sqlite)
-- Stores groups. :rows = [[id, provider, rule, error, reason, code, category, scope, state, first_seen, opened_at, last_seen,
-- resolved_at, attempts, deaths], …]
INSERT OR REPLACE INTO failure_groups ({failure_group})
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14
FROM json_each(:rows);

-- name: failure_groups_put (postgres)
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

-- name: failure_groups_these (sqlite)
-- The known ones of these groups. :ids = [group id, …]
SELECT {failure_group}
FROM failure_groups
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: failure_groups_these (postgres)
-- The known ones of these groups. :ids = [group id, …]
SELECT {failure_group}
FROM carteiro.failure_groups
WHERE id = ANY (:ids::text[]);

-- name: failure_hours (sqlite)
-- Hours of groups, of a tenant, or of all ('') together. :ids = [group id, …]; :tenant; :since
SELECT c.group_id, c.at, c.attempts, c.deaths
FROM json_each(:ids) AS i
CROSS JOIN failure_counts AS c ON c.group_id = i.value AND c.at >= :since AND c.tenant = :tenant
ORDER BY c.group_id, c.at;

-- name: failure_hours (postgres)
-- Hours of groups, of a tenant, or of all ('') together. :ids = [group id, …]; :tenant; :since
SELECT c.group_id, c.at, c.attempts, c.deaths
FROM unnest(:ids::text[]) AS i (group_id)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.failure_counts AS f
    WHERE f.group_id = i.group_id AND f.at >= :since AND f.tenant = :tenant
    OFFSET 0
) AS c
ORDER BY c.group_id, c.at;
