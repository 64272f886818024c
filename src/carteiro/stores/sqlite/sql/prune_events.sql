-- Drops the timelines of messages. :ids = [id, …]
DELETE FROM events
WHERE message_id IN (SELECT value FROM json_each(:ids));
