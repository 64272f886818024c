-- What idempotency keys stand for, those made after a moment alone. :keys = [[tenant, key], …]; :after
SELECT k.tenant, k.key, k.digest, k.message_id, k.recipient_id, k.request_id, k.created_at
FROM json_each(:keys) AS i CROSS JOIN idempotency_keys AS k ON k.tenant = i.value ->> 0 AND k.key = i.value ->> 1
WHERE k.created_at > :after;
