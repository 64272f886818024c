-- How many records a tenant has, as far as it matters. The caller holds the tenant. $1 tenant; $2 enough to know
SELECT count(*) FROM (SELECT FROM carteiro.suppressions WHERE tenant = $1::text LIMIT $2::bigint) AS kept;
