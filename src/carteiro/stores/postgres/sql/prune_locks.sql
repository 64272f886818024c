-- Drops locks that nobody holds; how many. $1 limit
WITH gone AS (
    DELETE FROM carteiro.door_locks
    WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM carteiro.door_locks AS l LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) FROM gone;
