-- name: buried
-- Expiry of those of the messages that are dead letters. :ids
SELECT message_id, moved_at + ttl_ms
FROM carteiro.dead_letters
WHERE message_id = ANY (:ids::text[]);

-- name: declared
-- The claims that have an attempt in flight. :leases = [[id, claim], …]
SELECT l.id, l.claim
FROM unnest(:leases_0::text[], :leases_1::text[]) AS l (id, claim)
CROSS JOIN LATERAL (SELECT n.no FROM carteiro.messages AS n WHERE n.id = l.id OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = m.no OFFSET 0) AS e
WHERE e.state = 'SENT_ATTEMPT' AND e.holder = l.claim;

-- name: open
-- Messages as a worker must know them. :ids; :places: number (1, 2, …) of the tenant of each; :tenants, each once
SELECT * FROM carteiro.opened(:ids::text::text[], :places::text::integer[], :tenants::text::text[]);

-- name: shares
-- The shares of tenants. :ids
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM carteiro.tenants
WHERE id = ANY (:ids::text[]);

-- name: unfinished_mark
-- The last assigned number, and the open transactions that have taken one: `nextval` locks the sequence until their end. Others
-- may stay open for hours.
SELECT
    (SELECT last_value - (NOT is_called)::integer FROM carteiro.message_no),
    ARRAY(
        SELECT l.virtualtransaction FROM pg_locks AS l
        WHERE
            l.relation = 'carteiro.message_no'::regclass AND l.mode = 'RowExclusiveLock'
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    );

-- name: unfinished_page
-- The next unfinished messages as jobs, by expiry. :now; :longest; :expires_at, :edge: a message number; :limit
SELECT
    m.id, m.kind, m.tenant, m.priority, m.due_at,
    CASE
        WHEN m.state = 'SENT_ATTEMPT' AND m.held_until > :now::bigint AND m.held_until <= :now::bigint + :longest::bigint
            THEN m.held_until
        ELSE m.due_at
    END,
    u.expires_at, u.message_no::text
FROM (
    SELECT message_no, expires_at
    FROM carteiro.unfinished
    WHERE (expires_at, message_no) > (:expires_at, :edge::text::bigint)
    ORDER BY expires_at, message_no
    LIMIT :limit
) AS u
CROSS JOIN LATERAL (SELECT * FROM carteiro.ledger AS n WHERE n.no = u.message_no OFFSET 0) AS m
ORDER BY u.expires_at, u.message_no;

-- name: unfinished_recent
-- Unfinished messages after a number, as jobs. :now; :longest; :after; :limit
SELECT
    m.id, m.kind, m.tenant, m.priority, m.due_at,
    CASE
        WHEN m.state = 'SENT_ATTEMPT' AND m.held_until > :now::bigint AND m.held_until <= :now::bigint + :longest::bigint
            THEN m.held_until
        ELSE m.due_at
    END,
    m.no
FROM carteiro.ledger AS m
WHERE m.no > :after::bigint AND m.finished_at IS NULL
ORDER BY m.no
LIMIT :limit;

-- name: unfinished_these
-- Those of the messages that are unfinished, as jobs. :now; :longest; :ids
SELECT
    m.id, m.kind, m.tenant, m.priority, m.due_at,
    CASE
        WHEN m.state = 'SENT_ATTEMPT' AND m.held_until > :now::bigint AND m.held_until <= :now::bigint + :longest::bigint
            THEN m.held_until
        ELSE m.due_at
    END
FROM unnest(:ids::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT * FROM carteiro.ledger AS n WHERE n.id = i.id OFFSET 0) AS m
WHERE m.finished_at IS NULL;
