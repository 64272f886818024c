-- Dead letters that outlived their time, the longest first, none that is on its way. :now; :limit
SELECT message_id
FROM dead_letters
WHERE redriven_at IS NULL AND moved_at + ttl_ms <= :now
ORDER BY moved_at + ttl_ms, message_id
LIMIT :limit;
