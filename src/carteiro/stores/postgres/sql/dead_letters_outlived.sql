-- Dead letters that outlived their time, the longest first, none that is on its way. $1 now; $2 limit
SELECT message_id
FROM carteiro.dead_letters
WHERE redriven_at IS NULL AND moved_at + ttl_ms <= $1
ORDER BY moved_at + ttl_ms, message_id
LIMIT $2;
