-- Sets or lifts the send limit of a kind; another limit counts what was drawn from the last. The caller holds the lock of the ring.
-- $1 kind; $2 count; $3 per, in milliseconds
WITH new AS (
    INSERT INTO carteiro.ring_clock (kind, limit_count, limit_per_ms)
    SELECT $1::text, $2::bigint, $3::bigint
    WHERE NOT EXISTS (SELECT FROM carteiro.ring_clock AS c WHERE c.kind = $1::text)
)
UPDATE carteiro.ring_clock AS c
SET n = c.n + 1, limit_count = $2::bigint, limit_per_ms = $3::bigint,
    draws = CASE WHEN $2::bigint IS NULL THEN '[]' ELSE c.draws END
WHERE c.kind = $1::text AND (c.limit_count IS DISTINCT FROM $2::bigint OR c.limit_per_ms IS DISTINCT FROM $3::bigint);
