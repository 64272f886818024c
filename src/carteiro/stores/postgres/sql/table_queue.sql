-- name: requests_are_there
-- True if any change is requested.
SELECT EXISTS (SELECT FROM carteiro.queue_changes);

-- name: requests_find
-- Requested changes, each with its message as it is now, in one snapshot: a process that applies it changes the version.
-- The oldest of each tenant, the same number of each: no tenant delays the others. $1 limit
WITH RECURSIVE tenants AS (
    (SELECT r.tenant FROM carteiro.queue_changes AS r ORDER BY r.tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant FROM carteiro.queue_changes AS r WHERE r.tenant > t.tenant ORDER BY r.tenant LIMIT 1)
    FROM tenants AS t
    WHERE t.tenant IS NOT NULL
),
share AS (
    SELECT greatest($1::bigint / greatest(count(t.tenant), 1), 1) AS size FROM tenants AS t
)
SELECT
    c.no, c.what, c.number, c.reason, c.role, q.max_retries,
    m.no, m.version, l.claim_id, coalesce(l.parked_until, d.parked_until), l.claim_id IS NOT NULL, true,
    (SELECT max(v.position) FROM carteiro.events AS v WHERE v.message_no = m.no), length(m.timeline),
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged, m.in_doubt,
    m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider, m.provider_message_id,
    m.failure, m.duration_ms, m.finished_at, m.retry_of
FROM (
    SELECT o.*
    FROM tenants AS t
    CROSS JOIN LATERAL (
        SELECT r.no, r.message_no, r.what, r.number, r.reason, r.role
        FROM carteiro.queue_changes AS r
        WHERE (r.tenant, r.no) > (t.tenant, 0) AND (r.tenant, r.no) < (t.tenant, 9223372036854775807)
        ORDER BY r.tenant, r.no -- the whole key of the index, so that no other index fits
        LIMIT (SELECT s.size FROM share AS s)
    ) AS o
    ORDER BY o.no
    LIMIT $1
) AS c
LEFT JOIN LATERAL (SELECT * FROM carteiro.ledger AS m WHERE m.no = c.message_no OFFSET 0) AS m ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.queue_rows AS q WHERE q.message_no = c.message_no OFFSET 0) AS q ON true
LEFT JOIN LATERAL carteiro.lease_of(m.no, m.tenant, m.kind) AS l ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.delayed AS d WHERE d.message_no = c.message_no OFFSET 0) AS d ON true
ORDER BY c.no;

-- name: requests_limit
-- Applies requested numbers of retries. $1 = [change, …]
WITH taken AS (
    DELETE FROM carteiro.queue_changes WHERE no = ANY ($1::bigint[]) RETURNING message_no, number
),
shown AS (
    UPDATE carteiro.queue_rows AS q SET max_retries = t.number
    FROM taken AS t
    WHERE q.message_no = t.message_no
)
UPDATE carteiro.messages AS m
SET content = regexp_replace(m.content, '^\{"maxRetries":\d+', '{"maxRetries":' || t.number)
FROM taken AS t
WHERE m.no = t.message_no;

-- name: rows_pending
-- The number of unfinished ones among the newest rows; a message without an entry is one. $1 limit
SELECT count(*)
FROM (SELECT q.message_no FROM carteiro.queue_rows AS q ORDER BY q.message_no DESC LIMIT $1) AS r
LEFT JOIN LATERAL (
    SELECT e.finished_at FROM carteiro.entries AS e WHERE e.message_no = r.message_no OFFSET 0
) AS e ON true
WHERE e.finished_at IS NULL;

-- name: requests_take
-- Deletes requested changes: another transaction that wants them waits, and finds none. $1 = [change, …]
DELETE FROM carteiro.queue_changes WHERE no = ANY ($1::bigint[]) RETURNING no;

-- name: requests_apply
-- As `save`, for requested changes: deletes the requests of stored ones. $46 = [change, …], an item each
WITH saved AS MATERIALIZED (
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
    )
),
applied AS (
    DELETE FROM carteiro.queue_changes AS c
    USING saved AS s
    WHERE c.no = ANY (ARRAY(SELECT ($46::bigint[])[i] FROM unnest(s.stored) AS i))
)
SELECT stored, has_work FROM saved;
