-- The ledger entries of the ids, each with its job if it has one: a job that is not parked waits, and then the message
-- itself says where. :ids = [id, …]
SELECT
    i.value, m.no, p.claim_id, p.parked_until, coalesce(p.kind, m.kind), coalesce(p.tenant, m.tenant),
    p.id IS NOT NULL, m.no IS NOT NULL AND m.finished_at IS NULL,
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged,
    m.in_doubt, m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider,
    m.provider_message_id, m.failure, m.duration_ms, m.finished_at
FROM json_each(:ids) AS i
LEFT JOIN parked AS p ON p.id = i.value
LEFT JOIN messages AS m
    ON m.no = coalesce(p.message_no, (SELECT n.no FROM messages AS n WHERE n.id = i.value));
