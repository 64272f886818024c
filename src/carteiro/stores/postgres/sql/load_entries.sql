-- The entries of messages, with the jobs that stand for them. $1 ids
SELECT
    m.no, e.version, l.claim_id, coalesce(l.parked_until, d.parked_until), l.message_no IS NOT NULL,
    EXISTS (SELECT FROM carteiro.queue_changes AS c WHERE c.message_no = m.no AND c.what <> 'limit'),
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, e.state, e.due_at, e.expires_at, e.attempts, e.charged, e.in_doubt,
    e.round, e.revision, e.holder, e.held_until, e.cancel_requested_at, e.evidence, e.provider, e.provider_message_id,
    e.failure, e.duration_ms, e.finished_at
FROM carteiro.messages AS m
JOIN LATERAL (SELECT * FROM carteiro.entries AS e WHERE e.message_no = m.no OFFSET 0) AS e ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.leased AS l WHERE l.message_no = m.no OFFSET 0) AS l ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.delayed AS d WHERE d.message_no = m.no OFFSET 0) AS d ON true
WHERE m.id = ANY (ARRAY(SELECT unnest($1::text[])));
