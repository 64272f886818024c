-- The oldest dead letters of a tenant that are not on their way. $1 tenant; $2 limit
SELECT message_id, moved_at
FROM carteiro.dead_letters
WHERE tenant = $1 AND redriven_at IS NULL
ORDER BY moved_at, message_id
LIMIT $2;
