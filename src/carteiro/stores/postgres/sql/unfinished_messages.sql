-- How many messages are unfinished, counted no further than $1.
SELECT count(*)
FROM (SELECT FROM carteiro.entries WHERE finished_at IS NULL LIMIT $1) AS e;
