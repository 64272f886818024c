-- name: dead_letters_drop
-- Takes dead letters out of the index, none that is on its way; how many. $1 = [id, …]
WITH mine AS (
    SELECT message_id FROM carteiro.dead_letters
    WHERE message_id = ANY ($1::text[]) AND redriven_at IS NULL
    ORDER BY message_id
    FOR UPDATE
),
dropped AS (
    DELETE FROM carteiro.dead_letters
    WHERE message_id = ANY (ARRAY(SELECT message_id FROM mine))
    RETURNING message_id
)
SELECT count(*) FROM dropped;

-- name: dead_letters_find
-- Dead letters of all tenants, newest first, from the place where the page before ended; null matches all.
-- $1 tenant; $2 kind; $3 reason; $4 code; $5 category; $6 is redriven; $7 text, in lower case; $8 moved after;
-- $9, $10 the place; $11 limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.moved_at >= $8::bigint AND (d.moved_at, d.message_id) < ($9::bigint, $10::text)
    AND carteiro.is_wanted(d, $1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, $7::text)
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT $11;

-- name: dead_letters_find_by_code
-- Dead letters of all tenants with one code, newest first, from the place where the page before ended; null matches all.
-- $1 tenant; $2 kind; $3 reason; $4 code; $5 category; $6 is redriven; $7 text, in lower case; $8 moved after;
-- $9, $10 the place; $11 limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.code = $4 AND d.moved_at >= $8::bigint AND (d.moved_at, d.message_id) < ($9::bigint, $10::text)
    AND carteiro.is_wanted(d, $1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, $7::text)
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT $11;

-- name: dead_letters_find_by_reason
-- Dead letters of all tenants for one reason, newest first, from the place where the page before ended; null matches all.
-- $1 tenant; $2 kind; $3 reason; $4 code; $5 category; $6 is redriven; $7 text, in lower case; $8 moved after;
-- $9, $10 the place; $11 limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.reason = $3 AND d.moved_at >= $8::bigint AND (d.moved_at, d.message_id) < ($9::bigint, $10::text)
    AND carteiro.is_wanted(d, $1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, $7::text)
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT $11;

-- name: dead_letters_find_by_tenant
-- Dead letters of one tenant, newest first, from the place where the page before ended; null matches all.
-- $1 tenant; $2 kind; $3 reason; $4 code; $5 category; $6 is redriven; $7 text, in lower case; $8 moved after;
-- $9, $10 the place; $11 limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.tenant = $1 AND d.moved_at >= $8::bigint AND (d.moved_at, d.message_id) < ($9::bigint, $10::text)
    AND carteiro.is_wanted(d, $1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, $7::text)
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT $11;

-- name: dead_letters_first
-- When the oldest dead letter was moved here.
SELECT min(moved_at) FROM carteiro.dead_letters;

-- name: dead_letters_group
-- How many dead letters have something in common, the largest group first; null matches all.
-- $1 tenant; $2 kind; $3 reason; $4 code; $5 category; $6 is redriven; $7 text, in lower case; $8 moved after;
-- $9, $10 the place; $11 what: code, tenant, reason or category
SELECT key, count(*), min(moved_at), max(moved_at)
FROM (
    SELECT
        CASE $11::text WHEN 'code' THEN d.code WHEN 'tenant' THEN d.tenant WHEN 'reason' THEN d.reason ELSE d.category END
            AS key,
        d.moved_at
    FROM carteiro.dead_letters AS d
    WHERE
        d.moved_at >= $8::bigint AND (d.moved_at, d.message_id) < ($9::bigint, $10::text)
        AND carteiro.is_wanted(d, $1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, $7::text)
) AS wanted
GROUP BY key
ORDER BY count(*) DESC, key;

-- name: dead_letters_load
-- Dead letters with the contents that the ledger has, in the order asked. $1 = [id, …]
SELECT
    d.message_id, d.tenant, d.kind, coalesce(c.content, ''), d.reason, d.failed_attempts, d.failure, d.failed_at,
    d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at
FROM unnest($1::text[]) WITH ORDINALITY AS i (id, place)
CROSS JOIN LATERAL (SELECT * FROM carteiro.dead_letters AS n WHERE n.message_id = i.id LIMIT 1) AS d
LEFT JOIN LATERAL (SELECT n.content FROM carteiro.contents AS n WHERE n.message_no = d.message_no LIMIT 1) AS c ON true
ORDER BY i.place;

-- name: dead_letters_moved
-- When these dead letters were moved here. $1 ids
SELECT message_id, moved_at
FROM carteiro.dead_letters
WHERE message_id = ANY ($1::text[]);

-- name: dead_letters_oldest
-- The oldest dead letters of a tenant that are not on their way. $1 tenant; $2 limit
SELECT message_id, moved_at
FROM carteiro.dead_letters
WHERE tenant = $1 AND redriven_at IS NULL
ORDER BY moved_at, message_id
LIMIT $2;

-- name: dead_letters_outlived
-- Dead letters that outlived their time, the longest first, none that is on its way. $1 now; $2 limit
SELECT message_id
FROM carteiro.dead_letters
WHERE redriven_at IS NULL AND moved_at + ttl_ms <= $1
ORDER BY moved_at + ttl_ms, message_id
LIMIT $2;

-- name: dead_letters_restore
-- Puts dead letters back whose messages are still dead, and have none; how many. The entries are held meanwhile: what is
-- redriven or pruned now either was before, or finds its dead letter.
-- Arrays: $1 message ids; $2 tenants; $3 reasons; $4 codes; $5 categories; $6 failures; $7 failed attempts; $8 failed_at;
-- $9 enqueued_at; $10 moved_at; $11 ttl_ms
WITH told AS (
    SELECT DISTINCT ON (r.id) r.*
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::json[], $7::integer[], $8::bigint[], $9::bigint[],
        $10::bigint[], $11::bigint[]
    ) AS r (id, tenant, reason, code, category, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms)
),
dead AS (
    SELECT m.no, m.kind, r.*
    FROM told AS r
    JOIN carteiro.messages AS m ON m.id = r.id AND m.tenant = r.tenant
    JOIN carteiro.entries AS e ON e.message_no = m.no AND e.state IN ('FAILED', 'EXPIRED')
    ORDER BY m.no
    FOR UPDATE OF e
),
restored AS (
    INSERT INTO carteiro.dead_letters (
        message_id, message_no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at, enqueued_at,
        moved_at, ttl_ms
    )
    SELECT
        id, no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms
    FROM dead
    ON CONFLICT (message_id) DO NOTHING
    RETURNING message_id
)
SELECT count(*) FROM restored;

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
