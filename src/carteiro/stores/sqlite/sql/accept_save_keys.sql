-- Lets idempotency keys stand for new messages; what an expired one stood for is forgotten.
-- :rows = [[tenant, key, digest, message id, recipient id, request id], …]; :now
INSERT INTO idempotency_keys (tenant, key, digest, message_id, recipient_id, request_id, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now
FROM json_each(:rows)
WHERE true
ON CONFLICT (tenant, key) DO UPDATE
SET digest = excluded.digest, message_id = excluded.message_id, recipient_id = excluded.recipient_id,
    request_id = excluded.request_id, created_at = excluded.created_at;
