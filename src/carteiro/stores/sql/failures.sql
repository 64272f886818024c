-- name: failure_counts_of_group
-- Hours of a group, and all notes of failures: in one statement, so that a note is in only one of them. :group; :since
SELECT 'count' AS what, group_id, at, tenant, attempts, deaths, first_at, last_at, samples
FROM carteiro.failure_counts
WHERE group_id = :group AND at >= :since
UNION ALL
SELECT what, '', at, '', 0, 0, 0, 0, figures FROM carteiro.rollup_notes
WHERE what = 'changed';

-- name: failure_counts_of_tenant
-- As `failure_counts_of_group`: all hours of each group of a tenant, as one. :tenant
SELECT
    'count' AS what, group_id, 0::bigint AS at, tenant, sum(attempts)::bigint, sum(deaths)::bigint, min(first_at),
    max(last_at), '[]' AS samples
FROM carteiro.failure_counts
WHERE tenant = :tenant
GROUP BY group_id, tenant
UNION ALL
SELECT what, '', at, '', 0, 0, 0, 0, figures FROM carteiro.rollup_notes
WHERE what = 'changed';

-- name: failure_counts_prune
-- Deletes hours of groups before a moment. :before; :limit
DELETE FROM carteiro.failure_counts
WHERE (group_id, at, tenant) IN (
    SELECT group_id, at, tenant FROM carteiro.failure_counts
    WHERE at < :before
    ORDER BY at
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
-- Deletes groups above the most, with their hours: the least recently seen of the rule with the most groups; open ones with
-- dead letters last, and those that somebody acknowledged or ignores. Returns them. :most
DELETE FROM carteiro.failure_groups
WHERE id IN (
    SELECT id
    FROM (
        SELECT
            id, last_seen,
            CASE WHEN state IN ('acknowledged', 'ignored') OR (state = 'open' AND deaths > 0) THEN 1 ELSE 0 END AS is_needed,
            row_number() OVER (PARTITION BY provider, rule ORDER BY last_seen DESC, id) AS place
        FROM carteiro.failure_groups
    ) AS g
    ORDER BY is_needed, place DESC, last_seen, id
    LIMIT (SELECT CASE WHEN count(*) > :most THEN count(*) - :most ELSE 0 END FROM carteiro.failure_groups)
)
RETURNING id;
