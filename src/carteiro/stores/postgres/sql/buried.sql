-- Until when those of the messages are kept that are dead letters. $1 ids
SELECT message_id, moved_at + ttl_ms
FROM carteiro.dead_letters
WHERE message_id = ANY ($1::text[]);
