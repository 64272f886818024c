-- The next seats in the ring of a kind, least virtual time first, after a given one.
-- :kind; :vt, :last_turn, :tenant; :limit
SELECT
    s.kind, s.tenant, s.vt, s.last_turn, s.processed,
    t.stride, t.cap, t.rate_per_second, t.next_token_us, t.paused OR t.disabled, t.retry_preset
FROM seats AS s JOIN tenants AS t ON t.id = s.tenant
WHERE s.kind = :kind AND s.wake_at IS NULL AND (s.vt, s.last_turn, s.tenant) > (:vt, :last_turn, :tenant)
ORDER BY s.vt, s.last_turn, s.tenant
LIMIT :limit;
