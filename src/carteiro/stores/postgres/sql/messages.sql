-- Those of the messages that match, in the order given, each without its content; null matches all.
-- $1 = [number, …]; $2 tenant; $3 kind; $4 state; $5 to; $6 external id; $7 provider's id;
-- $8 external id of the recipient; $9 tag; $10 limit
SELECT
    m.created_at, m.no,
    m.id, m.tenant, m.kind, e.state, m.priority, e.due_at, e.expires_at, e.attempts, e.charged, e.in_doubt, e.round,
    e.revision, e.holder, e.held_until, e.cancel_requested_at, m.request_id, m.external_id, m.recipient_id,
    m.to_address, m.subject, e.provider, e.provider_message_id, e.failure, e.duration_ms, m.created_at, e.finished_at,
    NULL, m.tags, m.template_type
FROM unnest($1::bigint[]) WITH ORDINALITY AS i (no, place)
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = i.no OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = i.no OFFSET 0) AS e
WHERE
    ($2::text IS NULL OR m.tenant = $2) AND ($3::text IS NULL OR m.kind = $3)
    AND ($4::text IS NULL OR e.state = $4) AND ($5::text IS NULL OR m.to_address = $5)
    AND ($6::text IS NULL OR m.external_id = $6)
    AND ($7::text IS NULL OR e.provider_message_id = $7)
    AND ($8::text IS NULL OR $8 = (
        SELECT r.external_id FROM carteiro.recipient_records AS r WHERE r.id = m.recipient_id AND r.tenant = m.tenant
    ))
    AND ($9::text IS NULL OR (
        SELECT true FROM carteiro.message_tags AS g
        WHERE g.tenant = m.tenant AND g.tag = $9 AND g.created_at = m.created_at AND g.message_no = m.no
    ))
ORDER BY i.place
LIMIT $10;
