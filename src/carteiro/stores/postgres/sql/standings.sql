-- How the tenants of a kind fare, least virtual time first; what claim has not read yet is counted. $1 kind; $2 now;
-- $3 longest hold
SELECT
    coalesce(s.tenant, n.tenant), s.last_processed_at, coalesce(c.turn, 0),
    CASE WHEN s.tenant IS NOT NULL AND s.wake_at IS NULL THEN greatest(s.last_turn, s.since_turn) END,
    coalesce(s.processed, 0), coalesce(s.consecutive, 0), coalesce(s.jobs, 0) + coalesce(n.jobs, 0),
    coalesce(f.jobs, 0),
    (SELECT count(*) FROM carteiro.seats AS r WHERE r.kind = $1::text AND r.wake_at IS NULL)
FROM (SELECT * FROM carteiro.seats WHERE kind = $1::text) AS s
FULL JOIN (
    SELECT u.tenant, sum(u.jobs)::bigint AS jobs
    FROM carteiro.unseen_notes() AS u JOIN carteiro.tenants AS t ON t.id = u.tenant
    WHERE u.kind = $1::text
    GROUP BY u.tenant
) AS n ON n.tenant = s.tenant
LEFT JOIN (
    SELECT l.tenant, count(*) AS jobs
    FROM carteiro.leased AS l
    WHERE
        l.kind = $1::text AND l.parked_until > $2::bigint AND l.parked_until <= $2::bigint + $3::bigint
    GROUP BY l.tenant
) AS f ON f.tenant = coalesce(s.tenant, n.tenant)
LEFT JOIN carteiro.ring_clock AS c ON c.kind = $1::text
ORDER BY coalesce(s.vt, 0), coalesce(s.last_turn, 0), coalesce(s.tenant, n.tenant);
