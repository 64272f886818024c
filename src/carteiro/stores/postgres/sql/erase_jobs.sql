-- Drops jobs of a tenant, wherever they lie, and notes how many fewer it has. The caller holds the lock of the ring.
-- $1 tenant; $2 far: nobody need look; arrays, of each message: $3 number; $4 id; $5 kind; $6 priority; $7 due time;
-- $8 1 if it has a job, 0 if not
WITH delayed AS (DELETE FROM carteiro.delayed WHERE message_no = ANY ($3::bigint[])),
leased AS (DELETE FROM carteiro.leased WHERE message_no = ANY ($3::bigint[])),
ready AS (
    DELETE FROM carteiro.ready
    WHERE ctid = ANY (ARRAY(
        SELECT r.ctid
        FROM unnest($4::text[], $5::text[], $6::integer[], $7::bigint[]) AS j (id, kind, priority, due_at)
        CROSS JOIN LATERAL (
            SELECT w.ctid FROM carteiro.ready AS w
            WHERE
                w.tenant = $1::text AND w.kind = j.kind AND w.rank = carteiro.rank(j.priority, j.due_at)
                AND w.id = j.id
            LIMIT 1
        ) AS r
    ))
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
SELECT j.kind, $1::text, -sum(j.jobs), $2::bigint
FROM unnest($5::text[], $8::integer[]) AS j (kind, jobs)
GROUP BY j.kind;
