-- One message with its content. $1 id; $2 tenant, null matches all
SELECT
    m.id, m.tenant, m.kind, e.state, m.priority, e.due_at, e.expires_at, e.attempts, e.charged, e.in_doubt, e.round,
    e.revision, e.holder, e.held_until, e.cancel_requested_at, m.request_id, m.external_id, m.recipient_id,
    m.to_address, m.subject, e.provider, e.provider_message_id, e.failure, e.duration_ms, m.created_at, e.finished_at,
    c.content, m.tags, m.template_type
FROM carteiro.messages AS m
JOIN carteiro.entries AS e ON e.message_no = m.no
LEFT JOIN carteiro.contents AS c ON c.message_no = m.no
WHERE m.id = $1 AND ($2::text IS NULL OR m.tenant = $2);
