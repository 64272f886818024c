-- Drops idempotency keys that stand for nothing any more, oldest first; how many. $1 made before; $2 limit
WITH gone AS (
    DELETE FROM carteiro.idempotency_keys
    WHERE ctid = ANY (ARRAY(
        SELECT k.ctid FROM carteiro.idempotency_keys AS k
        WHERE k.created_at <= $1
        ORDER BY k.created_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;
