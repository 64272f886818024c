-- Drops suppressions that are over, the longest first. $1 now; $2 limit
DELETE FROM carteiro.suppressions
WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM carteiro.suppressions AS s
    WHERE s.expires_at <= $1
    ORDER BY s.expires_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
));
