-- name: requests_are_there
-- Whether any change is requested.
SELECT EXISTS (SELECT FROM carteiro.queue_changes);

-- name: requests_find
-- Requested changes, each with its message as it is now, in one snapshot: whoever applied it meanwhile changed the version.
-- The oldest of each tenant, as many of each: what one tenant requested is not read while others have their turn. $1 limit
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
    m.no, e.version, l.claim_id, coalesce(l.parked_until, d.parked_until), l.message_no IS NOT NULL, true,
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, e.state, e.due_at, e.expires_at, e.attempts, e.charged, e.in_doubt,
    e.round, e.revision, e.holder, e.held_until, e.cancel_requested_at, e.evidence, e.provider, e.provider_message_id,
    e.failure, e.duration_ms, e.finished_at
FROM (
    SELECT o.*
    FROM tenants AS t
    CROSS JOIN LATERAL (
        SELECT r.no, r.message_no, r.what, r.number, r.reason, r.role
        FROM carteiro.queue_changes AS r
        WHERE (r.tenant, r.no) > (t.tenant, 0) AND (r.tenant, r.no) < (t.tenant, 9223372036854775807)
        ORDER BY r.tenant, r.no -- the whole key of the index: no other is walked
        LIMIT (SELECT s.size FROM share AS s)
    ) AS o
    ORDER BY o.no
    LIMIT $1
) AS c
LEFT JOIN LATERAL (SELECT * FROM carteiro.messages AS m WHERE m.no = c.message_no OFFSET 0) AS m ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.entries AS e WHERE e.message_no = c.message_no OFFSET 0) AS e ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.queue_rows AS q WHERE q.message_no = c.message_no OFFSET 0) AS q ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.leased AS l WHERE l.message_no = c.message_no OFFSET 0) AS l ON true
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
UPDATE carteiro.contents AS c
SET content = regexp_replace(c.content, '^\{"maxRetries":\d+', '{"maxRetries":' || t.number)
FROM taken AS t
WHERE c.message_no = t.message_no;

-- name: requests_take
-- Takes requested changes, in this transaction: whoever else wants them waits, and finds none. $1 = [change, …]
DELETE FROM carteiro.queue_changes WHERE no = ANY ($1::bigint[]) RETURNING no;
