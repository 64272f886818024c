-- One message with its content. :id; :tenant, null matches all
SELECT
    m.id, m.tenant, m.kind, m.state, m.priority, m.due_at, m.expires_at, m.attempts, m.charged, m.in_doubt, m.round,
    m.revision, m.holder, m.held_until, m.cancel_requested_at, m.request_id, m.external_id, m.recipient_id,
    m.to_address, m.subject, m.provider, m.provider_message_id, m.failure, m.duration_ms, m.created_at,
    m.finished_at, c.content, m.tags, m.template_type
FROM messages AS m LEFT JOIN contents AS c ON c.message_no = m.no
WHERE m.id = :id AND (:tenant IS NULL OR m.tenant = :tenant);
