-- Drops what was counted in windows that are over: at most a few rows a tenant are looked at, none that is in use. $1 now
DELETE FROM carteiro.api_counts
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM carteiro.api_counts AS c
    WHERE c.starts_at + c.window_ms <= $1
    FOR UPDATE SKIP LOCKED
));
