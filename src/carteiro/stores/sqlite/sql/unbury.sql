-- Sent or cancelled messages are no dead letters any more. :ids = [id, …]
DELETE FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));
