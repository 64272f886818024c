-- name: dead_letters_first
-- The time at which the oldest dead letter was made.
SELECT min(moved_at) FROM carteiro.dead_letters;

-- name: dead_letters_oldest
-- The oldest dead letters of a tenant, without redriven ones. :tenant; :limit
SELECT message_id, moved_at
FROM carteiro.dead_letters
WHERE tenant = :tenant AND redriven_at IS NULL
ORDER BY moved_at, message_id
LIMIT :limit;

-- name: dead_letters_outlived
-- Dead letters past their time to live, the longest past first, without redriven ones. :now; :limit
SELECT message_id
FROM carteiro.dead_letters
WHERE redriven_at IS NULL AND moved_at + ttl_ms <= :now
ORDER BY moved_at + ttl_ms, message_id
LIMIT :limit;

-- name: dead_letters_shares
-- The number of dead letters of each tenant, and of those that are not redriven.
SELECT tenant, count(*), count(*) FILTER (WHERE redriven_at IS NULL)
FROM carteiro.dead_letters
GROUP BY tenant;

-- name: dead_letters_sizes
-- The number of dead letters of each tenant, the largest first.
SELECT tenant, count(*)
FROM carteiro.dead_letters
GROUP BY tenant
ORDER BY count(*) DESC, tenant;
