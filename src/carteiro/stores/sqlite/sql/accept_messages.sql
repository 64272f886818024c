-- Adds a message to the ledger; the values in the order of the columns
INSERT INTO messages (
    no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, external_id, recipient_id,
    to_address, subject, due_at, expires_at, template_type, tags, created_at, state
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'ENQUEUED');
