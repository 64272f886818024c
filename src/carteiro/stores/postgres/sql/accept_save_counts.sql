-- Keeps what tenants handed in; a window that is over gives its row to the next.
-- $1 tenants, $2 window lengths, $3 starts, $4 counts
INSERT INTO carteiro.api_counts (tenant, window_ms, starts_at, count)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
ON CONFLICT (tenant, window_ms) DO UPDATE SET starts_at = excluded.starts_at, count = excluded.count;
