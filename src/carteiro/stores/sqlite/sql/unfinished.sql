-- How many jobs there are. :tenant, null matches all
SELECT coalesce(sum(jobs), 0) FROM seats
WHERE :tenant IS NULL OR tenant = :tenant;
