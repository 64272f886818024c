-- All messages, newest first, after a given one. $1 since; $2, $3 the one; $4 limit
SELECT created_at, no
FROM carteiro.messages
WHERE created_at >= $1 AND (created_at, no) < ($2, $3)
ORDER BY created_at DESC, no DESC
LIMIT $4;
