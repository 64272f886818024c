-- How many messages are unfinished, counted up to a limit. $1 limit
SELECT count(*)
FROM (SELECT FROM carteiro.entries WHERE finished_at IS NULL LIMIT $1) AS e;
