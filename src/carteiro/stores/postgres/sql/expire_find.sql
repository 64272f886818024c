-- Messages whose time to live is over, oldest first, after a given one. $1 now; $2 expires_at, $3 message number; $4 limit
SELECT m.id, e.expires_at, e.message_no
FROM (
    SELECT message_no, expires_at
    FROM carteiro.entries
    WHERE finished_at IS NULL AND expires_at <= $1 AND (expires_at, message_no) > ($2, $3)
    ORDER BY expires_at, message_no
    LIMIT $4
) AS e
JOIN LATERAL (SELECT id FROM carteiro.messages WHERE no = e.message_no OFFSET 0) AS m ON true
ORDER BY e.expires_at, e.message_no;
