-- Drops what was counted in windows that are over: at most a few rows a tenant are looked at. :now
DELETE FROM api_counts
WHERE starts_at + window_ms <= :now;
