-- The oldest dead letters of a tenant that are not on their way. :tenant; :limit
SELECT message_id, moved_at
FROM dead_letters
WHERE tenant = :tenant AND redriven_at IS NULL
ORDER BY moved_at, message_id
LIMIT :limit;
