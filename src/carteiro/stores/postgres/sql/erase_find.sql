-- The next messages of a tenant that are not in flight, e-mails first. $1 tenant; $2 now; $3 longest hold; $4 limit
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind = 'email:send'
        AND (
            SELECT l.parked_until > $2::bigint AND l.parked_until <= $2::bigint + $3::bigint
            FROM carteiro.leased AS l
            WHERE l.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
UNION ALL
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind <> 'email:send'
        AND (
            SELECT l.parked_until > $2::bigint AND l.parked_until <= $2::bigint + $3::bigint
            FROM carteiro.leased AS l
            WHERE l.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
LIMIT $4::bigint;
