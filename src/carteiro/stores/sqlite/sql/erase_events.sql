-- Leaves of events their types and times. :ids = [message id, …]
UPDATE events
SET metadata = '{}'
WHERE message_id IN (SELECT value FROM json_each(:ids));
