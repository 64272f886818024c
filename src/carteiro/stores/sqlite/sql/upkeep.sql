-- name: prune_contents
-- Deletes the mails of messages in the sandbox, and their contents. :numbers = [number, …]; :ids = [message id, …]
DELETE FROM inbox
WHERE message_id IN (SELECT value FROM json_each(:ids));

DELETE FROM contents
WHERE message_no IN (SELECT value FROM json_each(:numbers));

-- name: prune_counts
-- Deletes counts of past windows: reads at most a few rows per tenant. :now
DELETE FROM api_counts
WHERE starts_at + window_ms <= :now;

-- name: prune_find
-- The next page of messages in order of their ids, and which data of each is past its retention.
-- :after; :limit; :bodies_before and :histories_before, null keeps
SELECT
    m.id, m.no,
    m.finished_at <= :bodies_before AND d.message_id IS NULL,
    m.finished_at <= :histories_before AND d.message_id IS NULL
FROM ledger AS m LEFT JOIN dead_letters AS d ON d.message_id = m.id
WHERE m.id > :after
ORDER BY m.id
LIMIT :limit;

-- name: prune_free
-- Those of the messages that are not dead letters, with their ids. :numbers = [number, …]
SELECT m.no, m.id
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value
WHERE NOT EXISTS (SELECT 1 FROM dead_letters AS d WHERE d.message_id = m.id);

-- name: prune_hold
-- The messages themselves: no other transaction changes them. :numbers = [number, …]; :until
SELECT value FROM json_each(:numbers);

-- name: prune_keys
-- Deletes expired idempotency keys, oldest first. :before; :limit
DELETE FROM idempotency_keys
WHERE (tenant, key) IN (
    SELECT tenant, key FROM idempotency_keys
    WHERE created_at <= :before
    ORDER BY created_at
    LIMIT :limit
);

-- name: prune_locks
-- Nothing: locks leave no rows. :limit
SELECT 1;

-- name: prune_suppressions
-- Deletes expired suppressions, oldest first. :now; :limit
DELETE FROM suppressions
WHERE (tenant, key, reason) IN (
    SELECT tenant, key, reason FROM suppressions
    WHERE expires_at <= :now
    ORDER BY expires_at
    LIMIT :limit
);

-- name: examine_newest
-- The time of the newest message.
SELECT created_at FROM messages ORDER BY no DESC LIMIT 1;

-- name: clear_jobs
-- Deletes every job and seat: a separate queue has them, or they are made again.
DELETE FROM ready;
DELETE FROM delayed;
DELETE FROM leased;
DELETE FROM seats;

-- name: keeping
-- Three booleans: a separate queue has the jobs; the ring is of another server (never); a process has the lead.
-- :mark of the first; :lead; :now
SELECT
    EXISTS (SELECT 1 FROM overrides WHERE name = :mark), 0,
    EXISTS (SELECT 1 FROM leads WHERE name = :lead AND until > :now);

-- name: rebuild_ring
-- Nothing: `clear_jobs` and `restore_jobs` leave a whole ring. :now
SELECT :now;

-- name: restore_jobs
-- Adds a job for every unfinished message: ready, or waiting for its time or for the end of an attempt; and a seat for
-- every tenant with jobs of a kind, with its alarm set to now. :now; :longest
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT m.kind, m.tenant, :now, count(*)
FROM unfinished AS u CROSS JOIN messages AS m ON m.no = u.message_no
GROUP BY m.kind, m.tenant;
INSERT INTO delayed (message_no, seat, until, id)
SELECT m.no, s.no, max(m.due_at, iif(coalesce(m.held_until, 0) <= :now + :longest, coalesce(m.held_until, 0), 0)), m.id
FROM unfinished AS u CROSS JOIN ledger AS m CROSS JOIN seats AS s
WHERE
    m.no = u.message_no AND s.kind = m.kind AND s.tenant = m.tenant
    AND (
        m.due_at > :now
        OR coalesce(m.state = 'SENT_ATTEMPT' AND m.held_until > :now AND m.held_until <= :now + :longest, 0)
    );
INSERT INTO ready (seat, priority, due_at, id, message_no)
SELECT s.no, m.priority, m.due_at, m.id, m.no
FROM unfinished AS u CROSS JOIN ledger AS m CROSS JOIN seats AS s
WHERE
    m.no = u.message_no AND s.kind = m.kind AND s.tenant = m.tenant
    AND NOT EXISTS (SELECT 1 FROM delayed AS d WHERE d.message_no = m.no);
