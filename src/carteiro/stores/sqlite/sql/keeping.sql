-- name: clear_parked
-- Drops every row: what they are about is kept elsewhere, or is made again.
DELETE FROM parked;

-- name: clear_ready
-- Drops every row: what they are about is kept elsewhere, or is made again.
DELETE FROM ready;

-- name: clear_seats
-- Drops every row: what they are about is kept elsewhere, or is made again.
DELETE FROM seats;

-- name: is_led
-- A row if somebody has the lead of a task. :name; :now
SELECT 1 FROM leads WHERE name = :name AND until > :now;

-- name: restore_parked
-- A job for every unfinished message that waits: for its time, or for the end of an attempt. :now; :longest
INSERT INTO parked (id, message_no, kind, tenant, priority, due_at, parked_until)
SELECT id, no, kind, tenant, priority, due_at, max(due_at, iif(coalesce(held_until, 0) <= :now + :longest, coalesce(held_until, 0), 0))
FROM messages
WHERE
    finished_at IS NULL
    AND (
        due_at > :now
        OR coalesce(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, 0)
    );

-- name: restore_ready
-- A job for every unfinished message that is due and not being attempted. :now; :longest
INSERT INTO ready (tenant, kind, priority, due_at, id, message_no)
SELECT tenant, kind, priority, due_at, id, no
FROM messages
WHERE
    finished_at IS NULL AND due_at <= :now
    AND NOT coalesce(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, 0);

-- name: restore_seats
-- A seat for every tenant with jobs of a kind, to be looked at now. :now
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT kind, tenant, :now, count(*)
FROM messages
WHERE finished_at IS NULL
GROUP BY kind, tenant;
