-- name: clear_jobs
-- Drops every job: they are kept elsewhere, or are made again. The caller holds the lock of the ring.
WITH no_ready AS (DELETE FROM carteiro.ready),
no_delayed AS (DELETE FROM carteiro.delayed)
DELETE FROM carteiro.leased;

-- name: keeping
-- Whether jobs are kept elsewhere, whether the ring is that of another server, and whether somebody has a lead.
-- :mark of the first; :lead; :now
SELECT
    EXISTS (SELECT FROM carteiro.overrides AS o WHERE o.name = :mark::text),
    carteiro.is_restored(),
    EXISTS (SELECT FROM carteiro.leads AS l WHERE l.name = :lead::text AND l.until > :now::bigint);

-- name: lock_ring
-- Keeps claims away until the transaction ends.
SELECT carteiro.lock_ring();

-- name: rebuild_ring
-- Counts jobs and seats anew: see the function of that name. The caller holds the lock of the ring. :now
SELECT carteiro.rebuild_ring(:now);

-- name: restore_jobs
-- A job for every unfinished message: ready, or waiting for its time or for the end of an attempt. The caller holds the
-- lock of the ring. :now; :longest
WITH jobs AS (
    SELECT
        m.no, m.id, m.tenant, m.kind, carteiro.rank(m.priority, e.due_at) AS rank,
        CASE
            WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > :now::bigint AND e.held_until <= :now::bigint + :longest::bigint
                THEN e.held_until
            ELSE e.due_at
        END AS parked_until
    FROM carteiro.entries AS e
    CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = e.message_no OFFSET 0) AS m
    WHERE e.finished_at IS NULL
),
made_ready AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT tenant, kind, rank, id, no FROM jobs WHERE parked_until <= :now
    ON CONFLICT DO NOTHING
)
INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
SELECT no, id, kind, tenant, rank, parked_until FROM jobs WHERE parked_until > :now
ON CONFLICT DO NOTHING;
