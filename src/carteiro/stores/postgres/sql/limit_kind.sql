-- Sets or lifts the send limit of a kind; the same limit again changes nothing. The caller holds the lock of the ring.
-- $1 kind; $2 count; $3 per, in milliseconds
INSERT INTO carteiro.ring_clock AS c (kind, limit_count, limit_per_ms)
VALUES ($1::text, $2::bigint, $3::bigint)
ON CONFLICT (kind) DO UPDATE
SET limit_count = excluded.limit_count, limit_per_ms = excluded.limit_per_ms, next_token_us = 0
WHERE
    c.limit_count IS DISTINCT FROM excluded.limit_count
    OR c.limit_per_ms IS DISTINCT FROM excluded.limit_per_ms;
