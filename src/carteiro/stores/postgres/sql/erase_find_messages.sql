-- As `erase_find`, where jobs are kept elsewhere: past what is being attempted, and what is busy there.
-- $1 tenant; $2 now; $3 longest hold; $4 limit; $5 busy ids
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind = 'email:send' AND m.id <> ALL ($5::text[])
        AND (
            SELECT e.state = 'SENT_ATTEMPT' AND e.held_until > $2::bigint AND e.held_until <= $2::bigint + $3::bigint
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
UNION ALL
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind <> 'email:send' AND m.id <> ALL ($5::text[])
        AND (
            SELECT e.state = 'SENT_ATTEMPT' AND e.held_until > $2::bigint AND e.held_until <= $2::bigint + $3::bigint
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
LIMIT $4::bigint;
