-- How many jobs there are. :tenant, null matches all
SELECT coalesce(sum(jobs), 0)
FROM (
    SELECT jobs FROM seats WHERE tenant = :tenant
    UNION ALL
    SELECT jobs FROM seats WHERE :tenant IS NULL
);
