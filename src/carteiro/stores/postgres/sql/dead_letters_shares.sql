-- How many dead letters each tenant has, and how many of them are not on their way.
SELECT tenant, count(*), count(*) FILTER (WHERE redriven_at IS NULL)
FROM carteiro.dead_letters
GROUP BY tenant;
