-- name: buried
-- Until when those of the messages are kept that are dead letters. $1 ids
SELECT message_id, moved_at + ttl_ms
FROM carteiro.dead_letters
WHERE message_id = ANY ($1::text[]);

-- name: declared
-- The claims that have an attempt under way. $1 ids, $2 claims
SELECT l.id, l.claim
FROM unnest($1::text[], $2::text[]) AS l (id, claim)
CROSS JOIN LATERAL (SELECT n.no FROM carteiro.messages AS n WHERE n.id = l.id OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = m.no OFFSET 0) AS e
WHERE e.state = 'SENT_ATTEMPT' AND e.holder = l.claim;

-- name: limits
-- The limits that all claims of a kind share.
SELECT kind, limit_count, limit_per_ms
FROM carteiro.ring_clock
WHERE limit_count IS NOT NULL;

-- name: open
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

-- name: shares
-- What tenants may have of the machine. $1 ids
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM carteiro.tenants
WHERE id = ANY ($1::text[]);

-- name: shares_all
-- What the next tenants, by id, may have of the machine. $1 after; $2 limit
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM carteiro.tenants
WHERE id > $1::text
ORDER BY id
LIMIT $2;

-- name: unfinished_mark
-- The last number that was given out, and between which transactions whoever took it may still be at work.
SELECT
    (SELECT last_value FROM carteiro.message_no),
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint;

-- name: unfinished_page
-- The next unfinished messages as jobs, in the order of their expiry. $1 now; $2 longest hold; $3 expires_at, $4 number;
-- $5 limit
SELECT
    m.id, m.kind, m.tenant, m.priority, e.due_at,
    CASE
        WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > $1::bigint AND e.held_until <= $1::bigint + $2::bigint
            THEN e.held_until
        ELSE e.due_at
    END,
    e.expires_at, e.message_no
FROM (
    SELECT message_no, state, due_at, held_until, expires_at
    FROM carteiro.entries
    WHERE finished_at IS NULL AND (expires_at, message_no) > ($3::bigint, $4::bigint)
    ORDER BY expires_at, message_no
    LIMIT $5
) AS e
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = e.message_no OFFSET 0) AS m
ORDER BY e.expires_at, e.message_no;

-- name: unfinished_recent
-- Unfinished messages after a number, as jobs. $1 now; $2 longest hold; $3 after; $4 limit
SELECT
    m.id, m.kind, m.tenant, m.priority, e.due_at,
    CASE
        WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > $1::bigint AND e.held_until <= $1::bigint + $2::bigint
            THEN e.held_until
        ELSE e.due_at
    END,
    e.message_no
FROM (
    SELECT message_no, state, due_at, held_until
    FROM carteiro.entries
    WHERE message_no > $3::bigint AND finished_at IS NULL
    ORDER BY message_no
    LIMIT $4
) AS e
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = e.message_no OFFSET 0) AS m
ORDER BY e.message_no;

-- name: unfinished_these
-- Those of the messages that are unfinished, as jobs. $1 now; $2 longest hold; $3 ids
SELECT
    m.id, m.kind, m.tenant, m.priority, e.due_at,
    CASE
        WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > $1::bigint AND e.held_until <= $1::bigint + $2::bigint
            THEN e.held_until
        ELSE e.due_at
    END
FROM unnest($3::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.id = i.id OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = m.no OFFSET 0) AS e
WHERE e.finished_at IS NULL;
