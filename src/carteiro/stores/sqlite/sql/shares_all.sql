-- What the next tenants, by id, may have of the machine. :after; :limit
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM tenants
WHERE id > :after
ORDER BY id
LIMIT :limit;
