-- name: declare_first
-- Stores first attempts: see the function of that name.
SELECT carteiro.declare_first(
    $1::text::text[], $2::text::integer[], $3::text::text[], $4::text::text[], $5, $6::text::text[], $7, $8
);

-- name: drop_orphans
-- Drops leased jobs whose message is gone or finished. $1 message numbers; $2 claim
SELECT carteiro.drop_leases(array_agg(n), array_agg(l.claim_id), array_agg(l.tenant), array_agg(l.kind))
FROM carteiro.leased AS l, unnest(l.numbers) AS n
WHERE l.claim_id = $2 AND n = ANY ($1::bigint[]);

-- name: expire_find
-- Messages past their time to live, oldest first. :now; :expires_at, :edge: a message number; :limit
SELECT m.id, u.expires_at, u.message_no::text
FROM (
    SELECT message_no, expires_at
    FROM carteiro.unfinished
    WHERE expires_at <= :now AND (expires_at, message_no) > (:expires_at, :edge::text::bigint)
    ORDER BY expires_at, message_no
    LIMIT :limit
) AS u
JOIN LATERAL (SELECT id FROM carteiro.messages WHERE no = u.message_no OFFSET 0) AS m ON true
ORDER BY u.expires_at, u.message_no;

-- name: load_entries
-- The entries of messages, with their jobs. :ids
SELECT
    m.no, m.version, l.claim_id, coalesce(l.parked_until, d.parked_until), l.claim_id IS NOT NULL,
    EXISTS (SELECT FROM carteiro.queue_changes AS c WHERE c.message_no = m.no AND c.what <> 'limit'),
    (SELECT max(v.position) FROM carteiro.events AS v WHERE v.message_no = m.no), length(m.timeline),
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged, m.in_doubt,
    m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider, m.provider_message_id,
    m.failure, m.duration_ms, m.finished_at, m.retry_of
FROM unnest(:ids::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT * FROM carteiro.ledger AS n WHERE n.id = i.id OFFSET 0) AS m
LEFT JOIN LATERAL carteiro.lease_of(m.no, m.tenant, m.kind) AS l ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.delayed AS d WHERE d.message_no = m.no OFFSET 0) AS d ON true;

-- name: save
-- Stores judged entries: see the function of that name.
SELECT stored, has_work
FROM carteiro.save(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::text[], $5::text::text[], $6::text::bigint[],
    $7::text::text[], $8::text::bigint[], $9::text::bigint[], $10::text::integer[], $11::text::integer[],
    $12::text::integer[], $13::text::integer[], $14::text::integer[], $15::text::text[], $16::text::bigint[],
    $17::text::bigint[], $18::text::text[], $19::text::text[], $20::text::text[], $21::text::json[],
    $22::text::bigint[], $23::text::bigint[], $24::text::text[], $25::text::text[],
    $26::text::integer[], $27::text::bigint[],
    $28::text::integer[], $29::text::integer[], $30::text::text[], $31::text::json[], $32::text::bigint[],
    $33::text::integer[], $34::text::text[], $35::text::text[], $36::text::text[], $37::text::json[],
    $38::text::integer[], $39::text::text[], $40::text::text[], $41::text::integer[], $42::text::json[], $43, $44, $45
);

-- name: settle_sent
-- Stores sent messages: see the function of that name.
SELECT left_out, has_work
FROM carteiro.settle_sent(
    $1::text::text[], $2::text::integer[], $3::text::bigint[], $4::text::text[], $5::text::text[], $6::text::text[],
    $7::text::integer[], $8, $9, $10, $11
);

-- name: track_known
-- The recipient and providers of a message, and the ids of feedback on its timeline. :id
SELECT
    m.to_address,
    array_to_json(
        array_agg(DISTINCT carteiro.readable(v.metadata::text) ->> 'provider') FILTER (WHERE v.type = 'SENT_ATTEMPT')
    )::text,
    array_to_json(
        array_agg(carteiro.readable(v.metadata::text) ->> 'eventId') FILTER (WHERE v.type <> 'SENT_ATTEMPT')
    )::text
FROM carteiro.messages AS m
LEFT JOIN LATERAL (
    SELECT t.type, t.metadata FROM carteiro.timelines AS t
    WHERE
        t.message_no = m.no
        AND t.type IN ('SENT_ATTEMPT', 'DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED',
            'UNSUBSCRIBED')
) AS v ON true
WHERE m.id = :id
GROUP BY m.to_address;
