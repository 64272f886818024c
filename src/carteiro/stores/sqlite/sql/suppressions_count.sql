-- How many records a tenant has. :tenant
SELECT coalesce(max(count), 0) FROM suppression_counts WHERE tenant = :tenant;
