-- Messages that may have an open attempt, for there is or was a claim on their job, newest first, after a given one.
-- $1 tenant, null matches all; $2 since; $3, $4 the one; $5 limit
SELECT m.created_at, m.no
FROM (
    SELECT message_no FROM carteiro.leased WHERE $1::text IS NULL OR tenant = $1
    UNION
    SELECT message_no FROM carteiro.ready WHERE claims > 0 AND ($1 IS NULL OR tenant = $1)
    UNION
    SELECT message_no FROM carteiro.delayed WHERE claims > 0 AND ($1 IS NULL OR tenant = $1)
) AS q
CROSS JOIN LATERAL (SELECT n.created_at, n.no FROM carteiro.messages AS n WHERE n.no = q.message_no OFFSET 0) AS m
WHERE m.created_at >= $2 AND (m.created_at, m.no) < ($3, $4)
ORDER BY m.created_at DESC, m.no DESC
LIMIT $5;
