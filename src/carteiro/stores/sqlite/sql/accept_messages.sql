-- Adds messages to the ledger, with consecutive numbers. :rows = [[id, tenant, kind, declares, delivery, priority, ttl_ms,
-- request_id, external_id, recipient_id, to, subject, due_at, expires_at, template_type, tags], …], the last two if
-- there are any; :first; :now
INSERT INTO messages (
    no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id,
    external_id, recipient_id, to_address, subject, due_at, expires_at, template_type, tags, created_at, state
)
SELECT
    :first + key, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14,
    value ->> 15, :now, 'ENQUEUED'
FROM json_each(:rows);
