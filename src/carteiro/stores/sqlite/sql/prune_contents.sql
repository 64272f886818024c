-- Drops the contents of messages. :ids = [id, …]
DELETE FROM contents
WHERE message_id IN (SELECT value FROM json_each(:ids));
