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
