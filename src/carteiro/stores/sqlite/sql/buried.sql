-- Until when those of the messages are kept that are dead letters. :ids = [id, …]
SELECT message_id, moved_at + ttl_ms
FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));
