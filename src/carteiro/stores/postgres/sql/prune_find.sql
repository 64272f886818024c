-- The next page of messages in order of their ids, and what of each is past its retention and still there.
-- $1 after; $2 limit; $3 bodies finished until, $4 histories finished until: null keeps
SELECT
    m.id, m.no,
    e.finished_at <= $3::bigint AND NOT e.is_kept
    AND EXISTS (SELECT FROM carteiro.contents AS c WHERE c.message_no = m.no),
    e.finished_at <= $4::bigint AND NOT e.is_kept
FROM (SELECT n.id, n.no FROM carteiro.messages AS n WHERE n.id > $1 ORDER BY n.id LIMIT $2) AS m
CROSS JOIN LATERAL (
    SELECT
        n.finished_at, EXISTS (SELECT FROM carteiro.dead_letters AS d WHERE d.message_id = m.id) AS is_kept
    FROM carteiro.entries AS n
    WHERE n.message_no = m.no
    LIMIT 1
) AS e
ORDER BY m.id;
