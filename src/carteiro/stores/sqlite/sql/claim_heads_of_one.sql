-- The first ready jobs of one seat, in order. :kind; :tenant; :limit
SELECT id, claims, priority, due_at, message_no
FROM jobs
WHERE tenant = :tenant AND kind = :kind AND parked_until IS NULL
ORDER BY priority, due_at, id
LIMIT :limit;
