-- name: dead_letters_first
-- When the oldest dead letter was moved here.
SELECT min(moved_at) FROM carteiro.dead_letters;

-- name: dead_letters_oldest
-- The oldest dead letters of a tenant that are not on their way. :tenant; :limit
SELECT message_id, moved_at
FROM carteiro.dead_letters
WHERE tenant = :tenant AND redriven_at IS NULL
ORDER BY moved_at, message_id
LIMIT :limit;

-- name: dead_letters_outlived
-- Dead letters that outlived their time, the longest first, none that is on its way. :now; :limit
SELECT message_id
FROM carteiro.dead_letters
WHERE redriven_at IS NULL AND moved_at + ttl_ms <= :now
ORDER BY moved_at + ttl_ms, message_id
LIMIT :limit;

-- name: dead_letters_shares
-- How many dead letters each tenant has, and how many of them are not on their way.
SELECT tenant, count(*), count(*) FILTER (WHERE redriven_at IS NULL)
FROM carteiro.dead_letters
GROUP BY tenant;

-- name: dead_letters_sizes
-- How many dead letters each tenant has, the most first.
SELECT tenant, count(*)
FROM carteiro.dead_letters
GROUP BY tenant
ORDER BY count(*) DESC, tenant;
