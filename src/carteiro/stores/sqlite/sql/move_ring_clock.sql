-- The next clocks and send limits of kinds. :after = [kind]
SELECT kind, v, turn, seen_at, limit_count, limit_per_ms, draws
FROM ring_clock
WHERE kind > (:after ->> 0)
ORDER BY kind;
