-- What the next tenants, by id, may have of the machine. $1 after; $2 limit
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM carteiro.tenants
WHERE id > $1::text
ORDER BY id
LIMIT $2;
