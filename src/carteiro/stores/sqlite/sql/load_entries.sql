-- The ledger entries of the ids, each with its job if it has one. :ids = [id, …]
SELECT
    i.value, m.no, j.claim_id, j.parked_until, j.kind, j.tenant, j.id IS NOT NULL,
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged,
    m.in_doubt, m.round, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider,
    m.provider_message_id, m.failure, m.duration_ms, m.finished_at
FROM json_each(:ids) AS i
LEFT JOIN jobs AS j ON j.id = i.value
LEFT JOIN messages AS m
    ON m.no = coalesce(j.message_no, (SELECT n.no FROM messages AS n WHERE n.id = i.value));
