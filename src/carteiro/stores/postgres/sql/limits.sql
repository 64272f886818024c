-- The limits that all claims of a kind share.
SELECT kind, limit_count, limit_per_ms
FROM carteiro.ring_clock
WHERE limit_count IS NOT NULL;
