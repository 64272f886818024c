-- Sets or lifts the send limit of a kind; another limit counts what was drawn from the last. :kind; :count; :per_ms
INSERT INTO ring_clock (kind, limit_count, limit_per_ms)
VALUES (:kind, :count, :per_ms)
ON CONFLICT (kind) DO UPDATE
SET limit_count = excluded.limit_count, limit_per_ms = excluded.limit_per_ms,
    draws = iif(excluded.limit_count IS NULL, '[]', draws)
WHERE limit_count IS NOT excluded.limit_count OR limit_per_ms IS NOT excluded.limit_per_ms;
