-- How many messages are unfinished, of all tenants, counted up to a little more than a short queue has. $1 is not used
SELECT count(*)
FROM (SELECT FROM carteiro.entries WHERE finished_at IS NULL LIMIT 20000) AS e
WHERE $1::text IS NULL OR true;
