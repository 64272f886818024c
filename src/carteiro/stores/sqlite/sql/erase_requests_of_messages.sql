-- Drops the idempotency keys of messages. :ids = [id, …]
DELETE FROM idempotency_keys
WHERE message_id IN (SELECT value FROM json_each(:ids));
