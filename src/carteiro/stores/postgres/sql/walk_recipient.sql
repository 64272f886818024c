-- Messages to recipients, newest first, after a given one: each recipient's by themselves, by the whole key of the index.
-- $1 = [recipient, …]; $2 since; $3, $4 the one; $5 limit
SELECT m.created_at, m.no
FROM unnest($1::text[]) AS i (recipient)
CROSS JOIN LATERAL (
    SELECT created_at, no
    FROM carteiro.messages
    WHERE
        recipient_id IS NOT NULL
        AND (recipient_id, created_at, no) >= (i.recipient, $2::bigint, 0)
        AND (recipient_id, created_at, no) < (i.recipient, $3::bigint, $4::bigint)
    ORDER BY recipient_id DESC, created_at DESC, no DESC
    LIMIT $5
) AS m
ORDER BY m.created_at DESC, m.no DESC
LIMIT $5;
