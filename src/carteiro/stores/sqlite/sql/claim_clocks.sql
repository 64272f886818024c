-- The clocks and send limits of the kinds. :kinds = [kind, …]
SELECT kind, v, turn, seen_at, limit_count, limit_per_ms, next_token_us
FROM ring_clock
WHERE kind IN (SELECT value FROM json_each(:kinds));
