-- A job for every unfinished message: ready, or waiting for its time or for the end of an attempt. The caller holds the
-- lock of the ring. $1 now; $2 longest hold
WITH jobs AS (
    SELECT
        m.no, m.id, m.tenant, m.kind, carteiro.rank(m.priority, e.due_at) AS rank,
        CASE
            WHEN e.state = 'SENT_ATTEMPT' AND e.held_until > $1::bigint AND e.held_until <= $1::bigint + $2::bigint
                THEN e.held_until
            ELSE e.due_at
        END AS parked_until
    FROM carteiro.entries AS e
    CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = e.message_no OFFSET 0) AS m
    WHERE e.finished_at IS NULL
),
made_ready AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT tenant, kind, rank, id, no FROM jobs WHERE parked_until <= $1
    ON CONFLICT DO NOTHING
)
INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
SELECT no, id, kind, tenant, rank, parked_until FROM jobs WHERE parked_until > $1
ON CONFLICT DO NOTHING;
