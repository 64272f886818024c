-- name: compact
-- Rewrites every table without free space, one after the other; other users of a table wait.
VACUUM (FULL, ANALYZE)
    carteiro.access_keys, carteiro.api_counts, carteiro.audit, carteiro.claims, carteiro.dead_letters, carteiro.delayed,
    carteiro.entries, carteiro.events, carteiro.idempotency_keys, carteiro.inbox, carteiro.leads, carteiro.leased,
    carteiro.message_tags, carteiro.messages, carteiro.notes, carteiro.overrides, carteiro.ready,
    carteiro.recipient_records, carteiro.ring, carteiro.ring_clock, carteiro.seats, carteiro.sender_domains,
    carteiro.tallies, carteiro.templates, carteiro.tenants, carteiro.tiers, carteiro.unfinished;

-- name: compact_size
-- The bytes of all tables, with their indexes.
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
FROM pg_class
WHERE relnamespace = 'carteiro'::regnamespace AND relkind = 'r';

-- name: prune_contents
-- Deletes the contents of messages, and their mails in the sandbox. :numbers = [number, …]; :ids =
-- [message id, …]
WITH mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY (:ids::text[]))
UPDATE carteiro.messages
SET content = NULL
WHERE no = ANY (:numbers::bigint[]) AND content IS NOT NULL;

-- name: prune_counts
-- Deletes counts of past windows: reads at most a few rows per tenant, and skips locked ones. :now
DELETE FROM carteiro.api_counts
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM carteiro.api_counts AS c
    WHERE c.starts_at + c.window_ms <= :now
    FOR UPDATE SKIP LOCKED
));

-- name: prune_find
-- The next page of messages in order of their ids, and which data of each is past its retention and not yet deleted. :after;
-- :limit; :bodies_before and :histories_before, null keeps
SELECT
    m.id, m.no,
    e.finished_at <= :bodies_before::bigint AND NOT e.is_kept AND m.has_content,
    e.finished_at <= :histories_before::bigint AND NOT e.is_kept
FROM (
    SELECT n.id, n.no, n.content IS NOT NULL AS has_content FROM carteiro.messages AS n
    WHERE n.id > :after
    ORDER BY n.id LIMIT :limit
) AS m
LEFT JOIN LATERAL (
    SELECT
        n.finished_at, EXISTS (SELECT FROM carteiro.dead_letters AS d WHERE d.message_id = m.id) AS is_kept
    FROM carteiro.entries AS n
    WHERE n.message_no = m.no
    LIMIT 1
) AS e ON true
ORDER BY m.id;

-- name: prune_free
-- Those of the messages that are not dead letters, with their ids. :numbers = [number, …]
SELECT m.no, m.id
FROM carteiro.messages AS m
WHERE
    m.no = ANY (:numbers::bigint[])
    AND NOT EXISTS (SELECT FROM carteiro.dead_letters AS d WHERE d.message_id = m.id OFFSET 0);

-- name: prune_hold
-- Locks the entries of messages that finished by :until, skips locked ones, and returns their numbers. :numbers =
-- [number, …]; :until
SELECT message_no
FROM carteiro.entries
WHERE message_no = ANY (:numbers::bigint[]) AND finished_at <= :until
ORDER BY message_no
FOR UPDATE SKIP LOCKED;

-- name: prune_keys
-- Deletes expired idempotency keys, oldest first. :before; :limit
DELETE FROM carteiro.idempotency_keys
WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM carteiro.idempotency_keys AS k
    WHERE k.created_at <= :before
    ORDER BY k.created_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
));

-- name: prune_locks
-- Deletes unused locks. :limit
DELETE FROM carteiro.door_locks
WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM carteiro.door_locks AS l LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: prune_suppressions
-- Deletes expired suppressions, oldest first. :now; :limit
DELETE FROM carteiro.suppressions
WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM carteiro.suppressions AS s
    WHERE s.expires_at <= :now
    ORDER BY s.expires_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
));

-- name: clear_jobs
-- Deletes every job: a separate queue has them, or they are made again. The caller holds the lock of the ring.
WITH no_ready AS (DELETE FROM carteiro.ready),
no_delayed AS (DELETE FROM carteiro.delayed),
no_claims AS (DELETE FROM carteiro.claims)
DELETE FROM carteiro.leased;

-- name: keeping
-- Three booleans: a separate queue has the jobs; the ring is of another server; a process has the lead.
-- :mark of the first; :lead; :now
SELECT
    EXISTS (SELECT FROM carteiro.overrides AS o WHERE o.name = :mark::text),
    carteiro.is_restored(),
    EXISTS (SELECT FROM carteiro.leads AS l WHERE l.name = :lead::text AND l.until > :now::bigint);

-- name: lock_ring
-- Blocks claims until the transaction ends.
SELECT carteiro.lock_ring();

-- name: rebuild_ring
-- Counts jobs and seats again: see the function of that name. The caller holds the lock of the ring. :now
SELECT carteiro.rebuild_ring(:now);

-- name: restore_jobs
-- Adds a job for every unfinished message: ready, or waiting for its time or for the end of an attempt. The caller holds the
-- lock of the ring. :now; :longest
WITH jobs AS (
    SELECT
        m.no, m.id, m.tenant, m.kind, carteiro.rank(m.priority, m.due_at) AS rank,
        CASE
            WHEN m.state = 'SENT_ATTEMPT' AND m.held_until > :now::bigint AND m.held_until <= :now::bigint + :longest::bigint
                THEN m.held_until
            ELSE m.due_at
        END AS parked_until
    FROM carteiro.unfinished AS u
    CROSS JOIN LATERAL (SELECT * FROM carteiro.ledger AS n WHERE n.no = u.message_no OFFSET 0) AS m
),
made_ready AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT tenant, kind, rank, id, no FROM jobs WHERE parked_until <= :now
    ON CONFLICT DO NOTHING
)
INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
SELECT no, id, kind, tenant, rank, parked_until FROM jobs WHERE parked_until > :now
ON CONFLICT DO NOTHING;
