-- As `walk_unfinished`, where jobs are kept elsewhere: looks at every unfinished message.
-- $1 tenant, null matches all; $2 since; $3, $4 the one; $5 limit
SELECT created_at, message_no
FROM carteiro.entries
WHERE
    finished_at IS NULL AND ($1::text IS NULL OR tenant = $1)
    AND created_at >= $2 AND (created_at, message_no) < ($3, $4)
ORDER BY created_at DESC, message_no DESC
LIMIT $5;
