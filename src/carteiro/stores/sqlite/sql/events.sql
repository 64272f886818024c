-- The timeline of a message, oldest first. :id
SELECT type, metadata, created_at
FROM events
WHERE message_id = :id
ORDER BY id;
