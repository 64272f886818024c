-- Those of the messages that are unfinished, as jobs. $1 now; $2 longest hold; $3 ids
SELECT
    m.id, m.kind, m.tenant, m.priority, e.due_at,
    CASE
        WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > $1::bigint AND e.held_until <= $1::bigint + $2::bigint
            THEN e.held_until
        ELSE e.due_at
    END
FROM unnest($3::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.id = i.id OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = m.no OFFSET 0) AS e
WHERE e.finished_at IS NULL;
