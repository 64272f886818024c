-- Drops what the sandbox kept of messages. :ids = [id, …]
DELETE FROM inbox
WHERE message_id IN (SELECT value FROM json_each(:ids));
