-- The timeline of a message, oldest first. $1 id
SELECT type, metadata, created_at
FROM carteiro.events
WHERE message_no = (SELECT m.no FROM carteiro.messages AS m WHERE m.id = $1)
ORDER BY id;
