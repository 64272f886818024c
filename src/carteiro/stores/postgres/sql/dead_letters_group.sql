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
