-- As `walk_unfinished`, where jobs are kept elsewhere: looks at every unfinished message.
-- For ledgers of which `unfinished_messages` says that these are few. $1 since; $2, $3 the one; $4 limit
SELECT created_at, message_no
FROM carteiro.entries
WHERE finished_at IS NULL AND created_at >= $1 AND (created_at, message_no) < ($2, $3)
ORDER BY created_at DESC, message_no DESC
LIMIT $4;
