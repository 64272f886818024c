-- The clocks and send limits of the kinds. :kinds = [kind, …]
SELECT kind, v, turn, seen_at, limit_count, limit_per_ms, draws
FROM ring_clock
WHERE kind IN (SELECT value FROM json_each(:kinds));
