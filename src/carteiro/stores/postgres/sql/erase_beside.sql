-- Drops the dead letters and the idempotency keys of messages. $1 message ids
WITH letters AS (DELETE FROM carteiro.dead_letters WHERE message_id = ANY ($1::text[]))
DELETE FROM carteiro.idempotency_keys
WHERE message_id = ANY ($1::text[]);
