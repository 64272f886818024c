-- Makes the jobs of unfinished messages. $1 message numbers; $2 until when each waits, null: it is ready; $3 claims
WITH jobs AS MATERIALIZED (
    SELECT m.no, m.id, m.kind, m.tenant, carteiro.rank(m.priority, e.due_at) AS rank, j.parked_until, j.claims
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) AS j (message_no, parked_until, claims)
    JOIN carteiro.messages AS m ON m.no = j.message_no
    JOIN carteiro.entries AS e ON e.message_no = j.message_no
),
delayed AS (
    INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until, claims)
    SELECT no, id, kind, tenant, rank, parked_until, claims FROM jobs WHERE parked_until IS NOT NULL
)
INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no, claims)
SELECT tenant, kind, rank, id, no, claims FROM jobs WHERE parked_until IS NULL;
