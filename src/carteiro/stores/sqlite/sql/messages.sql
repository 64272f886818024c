-- Those of the messages that match, in the order given, each without its content; null matches all.
-- :numbers = [number, …]; :tenant; :kind; :state; :to; :external_id; :provider_id; :recipient_external_id; :tag; :limit
SELECT
    m.created_at, m.no,
    m.id, m.tenant, m.kind, m.state, m.priority, m.due_at, m.expires_at, m.attempts, m.charged, m.in_doubt, m.round,
    m.revision, m.holder, m.held_until, m.cancel_requested_at, m.request_id, m.external_id, m.recipient_id,
    m.to_address, m.subject, m.provider, m.provider_message_id, m.failure, m.duration_ms, m.created_at,
    m.finished_at, NULL, m.tags, m.template_type
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value
WHERE
    (:tenant IS NULL OR m.tenant = :tenant) AND (:kind IS NULL OR m.kind = :kind)
    AND (:state IS NULL OR m.state = :state) AND (:to IS NULL OR m.to_address = :to)
    AND (:external_id IS NULL OR m.external_id = :external_id)
    AND (:provider_id IS NULL OR m.provider_message_id = :provider_id)
    AND (:recipient_external_id IS NULL OR EXISTS (
        SELECT 1 FROM recipient_records AS r
        WHERE r.id = m.recipient_id AND r.tenant = m.tenant AND r.external_id = :recipient_external_id
    ))
    AND (:tag IS NULL OR EXISTS (
        SELECT 1 FROM message_tags AS g
        WHERE g.tenant = m.tenant AND g.tag = :tag AND g.created_at = m.created_at AND g.message_no = m.no
    ))
LIMIT :limit;
