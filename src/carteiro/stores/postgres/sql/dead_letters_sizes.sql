-- How many dead letters each tenant has, the most first.
SELECT tenant, count(*)
FROM carteiro.dead_letters
GROUP BY tenant
ORDER BY count(*) DESC, tenant;
