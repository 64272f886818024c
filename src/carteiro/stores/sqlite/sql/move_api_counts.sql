-- The next counts of requests. :after = [tenant, window_ms]
SELECT tenant, window_ms, starts_at, count
FROM api_counts
WHERE (tenant, window_ms) > (:after ->> 0, :after ->> 1)
ORDER BY tenant, window_ms;
