-- What the ledger knows of messages: number, version, the entry, then what a worker needs beside it. $1 ids
SELECT
    m.no, e.version,
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, e.state, e.due_at, e.expires_at, e.attempts, e.charged, e.in_doubt,
    e.round, e.revision, e.holder, e.held_until, e.cancel_requested_at, e.evidence, e.provider, e.provider_message_id,
    e.failure, e.duration_ms, e.finished_at,
    m.request_id, m.delivery, m.recipient_id,
    coalesce(
        CASE WHEN m.template_type IS NOT NULL THEN (
            SELECT CASE WHEN t.deleted_at IS NULL THEN t.retry_preset END FROM carteiro.templates AS t
            WHERE t.tenant = m.tenant AND t.type = m.template_type
            ORDER BY t.version DESC LIMIT 1
        ) END,
        (SELECT t.retry_preset FROM carteiro.tenants AS t WHERE t.id = m.tenant)
    ),
    (SELECT c.content FROM carteiro.contents AS c WHERE c.message_no = m.no),
    (
        SELECT true FROM carteiro.suppressions AS s WHERE s.tenant = m.tenant
        ORDER BY s.tenant, s.key, s.reason LIMIT 1 -- so that no table is walked for tenants that have none
    ) IS NOT NULL
FROM unnest($1::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.id = i.id OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = m.no OFFSET 0) AS e;
