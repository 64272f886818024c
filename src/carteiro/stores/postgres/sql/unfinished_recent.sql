-- Unfinished messages after a number, as jobs. $1 now; $2 longest hold; $3 after; $4 limit
SELECT
    m.id, m.kind, m.tenant, m.priority, e.due_at,
    CASE
        WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > $1::bigint AND e.held_until <= $1::bigint + $2::bigint
            THEN e.held_until
        ELSE e.due_at
    END,
    e.message_no
FROM (
    SELECT message_no, state, due_at, held_until
    FROM carteiro.entries
    WHERE message_no > $3::bigint AND finished_at IS NULL
    ORDER BY message_no
    LIMIT $4
) AS e
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = e.message_no OFFSET 0) AS m
ORDER BY e.message_no;
