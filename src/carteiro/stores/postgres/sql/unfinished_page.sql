-- The next unfinished messages as jobs, in the order of their expiry. $1 now; $2 longest hold; $3 expires_at, $4 number;
-- $5 limit
SELECT
    m.id, m.kind, m.tenant, m.priority, e.due_at,
    CASE
        WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > $1::bigint AND e.held_until <= $1::bigint + $2::bigint
            THEN e.held_until
        ELSE e.due_at
    END,
    e.expires_at, e.message_no
FROM (
    SELECT message_no, state, due_at, held_until, expires_at
    FROM carteiro.entries
    WHERE finished_at IS NULL AND (expires_at, message_no) > ($3::bigint, $4::bigint)
    ORDER BY expires_at, message_no
    LIMIT $5
) AS e
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = e.message_no OFFSET 0) AS m
ORDER BY e.expires_at, e.message_no;
