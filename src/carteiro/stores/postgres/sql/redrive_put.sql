-- Makes the jobs of messages claimable now, and leaves notes of them. $1 = [number, …]; $2 now
WITH put AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT m.tenant, m.kind, carteiro.rank(m.priority, e.due_at), m.id, m.no
    FROM unnest($1::bigint[]) AS i (no)
    CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = i.no LIMIT 1) AS m
    CROSS JOIN LATERAL (SELECT n.due_at FROM carteiro.entries AS n WHERE n.message_no = i.no LIMIT 1) AS e
    RETURNING tenant, kind, rank
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
SELECT kind, tenant, count(*), $2, min(rank)
FROM put
GROUP BY kind, tenant;
