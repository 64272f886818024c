-- Messages that have a job, newest first, after a given one. Looks at every job: for queues of which `unfinished` says
-- that they are short. $1 tenant, null matches all; $2 since; $3, $4 the one; $5 limit
WITH seats AS MATERIALIZED (
    SELECT kind, tenant, lowest, due_from
    FROM carteiro.seats_and_notes
    WHERE $1::text IS NULL OR tenant = $1
)
SELECT m.created_at, m.no
FROM (
    SELECT r.message_no
    FROM seats AS s
    CROSS JOIN LATERAL (
        SELECT n.message_no FROM carteiro.ready AS n
        WHERE n.tenant = s.tenant AND n.kind = s.kind AND n.rank >= s.lowest
        OFFSET 0
    ) AS r
    UNION
    SELECT d.message_no
    FROM seats AS s
    CROSS JOIN LATERAL (
        SELECT n.message_no FROM carteiro.delayed AS n
        WHERE n.tenant = s.tenant AND n.kind = s.kind AND n.parked_until >= s.due_from
        OFFSET 0
    ) AS d
    UNION
    SELECT l.message_no FROM carteiro.leased AS l WHERE $1 IS NULL OR l.tenant = $1
) AS q
CROSS JOIN LATERAL (SELECT n.created_at, n.no FROM carteiro.messages AS n WHERE n.no = q.message_no OFFSET 0) AS m
WHERE m.created_at >= $2 AND (m.created_at, m.no) < ($3, $4)
ORDER BY m.created_at DESC, m.no DESC
LIMIT $5;
