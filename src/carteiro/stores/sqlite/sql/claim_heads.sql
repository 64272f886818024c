-- The first ready jobs of each seat, in order. :seats = [[kind, tenant], …]; :limit per seat
SELECT s.key, j.id, j.claims, j.priority, j.due_at, j.message_no
FROM json_each(:seats) AS s CROSS JOIN jobs AS j
WHERE j.id IN (
    SELECT h.id FROM jobs AS h
    WHERE h.tenant = s.value ->> 1 AND h.kind = s.value ->> 0 AND h.parked_until IS NULL
    ORDER BY h.priority, h.due_at, h.id
    LIMIT :limit
)
ORDER BY s.key, j.priority, j.due_at, j.id;
