-- What tenants handed in, in the latest window of each length. $1 tenants
SELECT tenant, window_ms, starts_at, count FROM carteiro.api_counts WHERE tenant = ANY ($1::text[]);
