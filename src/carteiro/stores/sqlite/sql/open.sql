-- What the ledger knows of the messages, in the order asked: the entry, then what a worker needs beside it; no entry
-- where there is no message. :ids = [id, …]
SELECT
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged,
    m.in_doubt, m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider,
    m.provider_message_id, m.failure, m.duration_ms, m.finished_at,
    m.request_id, m.delivery, m.recipient_id, m.template_type, t.retry_preset, c.content,
    EXISTS (SELECT 1 FROM suppressions AS s WHERE s.tenant = m.tenant)
FROM json_each(:ids) AS i
LEFT JOIN messages AS m ON m.id = i.value
LEFT JOIN tenants AS t ON t.id = m.tenant
LEFT JOIN contents AS c ON c.message_no = m.no
ORDER BY i.key;
