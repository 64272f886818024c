-- name: begin
-- Stores declared attempts: see the function of that name.
SELECT carteiro.begin_attempts(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::integer[], $5::text::integer[],
    $6::text::bigint[], $7::text::text[], $8::text::integer[], $9::text::text[], $10::text::json[], $11::text::bigint[]
);

-- name: drop_orphans
-- Drops leased jobs whose message is gone or finished. $1 message numbers; $2 claim
WITH dropped AS (
    DELETE FROM carteiro.leased WHERE message_no = ANY ($1::bigint[]) AND claim_id = $2 RETURNING kind, tenant
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
SELECT kind, tenant, -count(*), 4611686018427387904 FROM dropped GROUP BY kind, tenant;

-- name: expire_find
-- Messages past their time to live, oldest first. :now; :expires_at, :edge: a message number; :limit
SELECT m.id, e.expires_at, e.message_no::text
FROM (
    SELECT message_no, expires_at
    FROM carteiro.entries
    WHERE finished_at IS NULL AND expires_at <= :now AND (expires_at, message_no) > (:expires_at, :edge::text::bigint)
    ORDER BY expires_at, message_no
    LIMIT :limit
) AS e
JOIN LATERAL (SELECT id FROM carteiro.messages WHERE no = e.message_no OFFSET 0) AS m ON true
ORDER BY e.expires_at, e.message_no;

-- name: load_entries
-- The entries of messages, with their jobs. :ids
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
WHERE m.id = ANY (ARRAY(SELECT unnest(:ids::text[])));

-- name: save
-- Stores judged entries: see the function of that name.
SELECT stored, has_work
FROM carteiro.save(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::text[], $5::text::text[],
    $6::text::text[], $7::text::bigint[], $8::text::bigint[], $9::text::integer[], $10::text::integer[],
    $11::text::integer[], $12::text::integer[], $13::text::integer[], $14::text::text[], $15::text::bigint[],
    $16::text::bigint[], $17::text::text[], $18::text::text[], $19::text::text[], $20::text::json[],
    $21::text::bigint[], $22::text::bigint[],
    $23::text::integer[], $24::text::bigint[],
    $25::text::integer[], $26::text::text[], $27::text::json[], $28::text::bigint[],
    $29::text::integer[], $30::text::text[], $31::text::text[], $32::text::text[], $33::text::json[],
    $34::text::integer[], $35::text::integer[], $36, $37, $38
);

-- name: settle_sent
-- Stores sent messages: see the function of that name.
SELECT stored, has_work
FROM carteiro.settle_sent(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::integer[], $5::text::integer[],
    $6::text::bigint[], $7::text::text[], $8::text::text[], $9::text::integer[], $10::text::text[], $11::text::json[],
    $12::text::bigint[], $13, $14
);

-- name: track_known
-- The recipient and providers of a message, and the ids of feedback on its timeline. :id
SELECT
    m.to_address,
    to_json(ARRAY(
        SELECT DISTINCT carteiro.readable(v.metadata::text) ->> 'provider' FROM carteiro.events AS v
        WHERE v.message_no = m.no AND v.type = 'SENT_ATTEMPT'
    ))::text,
    to_json(ARRAY(
        SELECT carteiro.readable(v.metadata::text) ->> 'eventId' FROM carteiro.events AS v
        WHERE
            v.message_no = m.no
            AND v.type IN ('DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED')
    ))::text
FROM carteiro.messages AS m
WHERE m.id = :id;
