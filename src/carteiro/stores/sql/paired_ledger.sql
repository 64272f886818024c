-- name: limits
-- The limits that all claims of a kind share.
SELECT kind, limit_count, limit_per_ms
FROM carteiro.ring_clock
WHERE limit_count IS NOT NULL;

-- name: shares_all
-- The shares of the next tenants, by id. :after; :limit
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM carteiro.tenants
WHERE id > :after::text
ORDER BY id
LIMIT :limit;
