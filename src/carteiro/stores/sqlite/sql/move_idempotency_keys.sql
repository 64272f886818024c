-- The next idempotency keys. :after = [tenant, key]
SELECT tenant, key, digest, message_id, recipient_id, request_id, created_at
FROM idempotency_keys
WHERE (tenant, key) > (:after ->> 0, :after ->> 1)
ORDER BY tenant, key;
