-- Lets idempotency keys stand for new messages; what an expired one stood for is forgotten.
-- $1 tenants, $2 keys, $3 digests, $4 message ids, $5 recipient ids, $6 request ids; $7 now
INSERT INTO carteiro.idempotency_keys (tenant, key, digest, message_id, recipient_id, request_id, created_at)
SELECT a.tenant, a.key, a.digest, a.message_id, a.recipient_id, a.request_id, $7
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS a (tenant, key, digest, message_id, recipient_id, request_id)
ON CONFLICT (tenant, key) DO UPDATE
SET digest = excluded.digest, message_id = excluded.message_id, recipient_id = excluded.recipient_id,
    request_id = excluded.request_id, created_at = excluded.created_at;
