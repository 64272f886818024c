-- Unfinished messages to a recipient (those that name it, and those to its address that name nobody) that nobody asked
-- to cancel. $1 recipient; $2 tenant; $3 email; $4 limit
(
    SELECT m.id FROM carteiro.messages AS m
    WHERE
        m.recipient_id = $1::text AND m.tenant = $2::text
        AND (
            SELECT e.finished_at IS NULL AND e.cancel_requested_at IS NULL
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        )
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
UNION ALL
(
    SELECT m.id FROM carteiro.messages AS m
    WHERE
        m.to_address = $3::text AND m.tenant = $2::text AND m.recipient_id IS NULL
        AND (
            SELECT e.finished_at IS NULL AND e.cancel_requested_at IS NULL
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        )
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
LIMIT $4::bigint;
