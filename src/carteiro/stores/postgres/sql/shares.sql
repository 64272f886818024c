-- What tenants may have of the machine. $1 ids
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM carteiro.tenants
WHERE id = ANY ($1::text[]);
