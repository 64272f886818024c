-- How many dead letters each tenant has, and how many of them are not on their way.
SELECT tenant, count(*), sum(redriven_at IS NULL)
FROM dead_letters
GROUP BY tenant;
