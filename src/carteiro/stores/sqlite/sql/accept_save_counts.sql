-- Keeps what tenants handed in; a window that is over gives its row to the next.
-- :rows = [[tenant, window_ms, starts_at, count], …]
INSERT INTO api_counts (tenant, window_ms, starts_at, count)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM json_each(:rows)
WHERE true
ON CONFLICT (tenant, window_ms) DO UPDATE SET starts_at = excluded.starts_at, count = excluded.count;
