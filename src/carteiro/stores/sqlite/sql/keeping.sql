-- name: clear_jobs
-- Drops every job: they are kept elsewhere, or are made again.
DELETE FROM ready;
DELETE FROM parked;

-- name: keeping
-- Whether jobs are kept elsewhere, whether the ring is that of another server (never), and whether somebody has a lead.
-- :mark of the first; :lead; :now
SELECT
    EXISTS (SELECT 1 FROM overrides WHERE name = :mark), 0,
    EXISTS (SELECT 1 FROM leads WHERE name = :lead AND until > :now);

-- name: rebuild_ring
-- A seat for every tenant with jobs of a kind, to be looked at now. :now
DELETE FROM seats;
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT kind, tenant, :now, count(*)
FROM (SELECT kind, tenant FROM ready UNION ALL SELECT kind, tenant FROM parked)
GROUP BY kind, tenant;

-- name: restore_jobs
-- A job for every unfinished message: ready, or waiting for its time or for the end of an attempt. :now; :longest
INSERT INTO ready (tenant, kind, priority, due_at, id, message_no)
SELECT tenant, kind, priority, due_at, id, no
FROM messages
WHERE
    finished_at IS NULL AND due_at <= :now
    AND NOT coalesce(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, 0);
INSERT INTO parked (id, message_no, kind, tenant, priority, due_at, parked_until)
SELECT id, no, kind, tenant, priority, due_at, max(due_at, iif(coalesce(held_until, 0) <= :now + :longest, coalesce(held_until, 0), 0))
FROM messages
WHERE
    finished_at IS NULL
    AND (
        due_at > :now
        OR coalesce(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, 0)
    );
