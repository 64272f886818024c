-- What idempotency keys stand for, those made after a moment alone. $1 tenants, $2 keys; $3 after
SELECT k.tenant, k.key, k.digest, k.message_id, k.recipient_id, k.request_id, k.created_at
FROM unnest($1::text[], $2::text[]) AS a (tenant, key)
JOIN LATERAL (
    SELECT * FROM carteiro.idempotency_keys AS i WHERE i.tenant = a.tenant AND i.key = a.key OFFSET 0
) AS k ON true
WHERE k.created_at > $3;
