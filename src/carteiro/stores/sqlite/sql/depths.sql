-- How much is in the queue, by kind: jobs, those in flight, and since when the longest waiting one could be claimed.
-- Goes from seat to seat and from priority to priority, past the backlog between them. :now; :longest
WITH RECURSIVE heads (kind, tenant, priority) AS (
    SELECT s.kind, s.tenant, (SELECT min(r.priority) FROM ready AS r WHERE r.tenant = s.tenant AND r.kind = s.kind)
    FROM seats AS s
    WHERE s.jobs > 0
    UNION ALL
    SELECT h.kind, h.tenant, (
        SELECT min(r.priority) FROM ready AS r
        WHERE r.tenant = h.tenant AND r.kind = h.kind AND r.priority > h.priority
    )
    FROM heads AS h
    WHERE h.priority IS NOT NULL
),
parts (kind, jobs, in_flight, since) AS (
    SELECT s.kind, s.jobs, (
        SELECT count(*) FROM parked AS p
        WHERE
            p.tenant = s.tenant AND p.is_claimed = 1 AND p.kind = s.kind
            AND p.parked_until > :now AND p.parked_until <= :now + :longest
    ), NULL
    FROM seats AS s
    UNION ALL
    SELECT h.kind, 0, 0, (
        SELECT min(r.due_at) FROM ready AS r
        WHERE r.tenant = h.tenant AND r.kind = h.kind AND r.priority = h.priority
    )
    FROM heads AS h
    UNION ALL
    SELECT s.kind, 0, 0, (
        SELECT min(p.parked_until) FROM parked AS p
        WHERE p.tenant = s.tenant AND p.is_claimed = c.value AND p.kind = s.kind AND p.parked_until <= :now
    )
    FROM seats AS s CROSS JOIN json_each('[0, 1]') AS c
    WHERE s.jobs > 0
)
SELECT kind, sum(jobs), sum(in_flight), min(since)
FROM parts
GROUP BY kind
ORDER BY kind;
