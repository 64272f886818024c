-- The first ready jobs of one seat, in order. :kind; :tenant; :limit
SELECT priority, due_at, id, claims, message_no
FROM ready
WHERE tenant = :tenant AND kind = :kind
ORDER BY priority, due_at, id
LIMIT :limit;
