-- The next jobs of a tenant, and those that are claimed, so many of each sort: whether claimed, rank, id.
-- :tenant; :kind; :limit; :now
SELECT * FROM (
    SELECT 1, 0, p.id FROM parked AS p
    WHERE p.tenant = :tenant AND p.is_claimed = 1 AND p.kind = :kind
    ORDER BY p.parked_until, p.id LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT 0, (r.priority << 48) | r.due_at, r.id FROM ready AS r
    WHERE r.tenant = :tenant AND r.kind = :kind
    ORDER BY r.priority, r.due_at, r.id LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT 0, (p.priority << 48) | p.due_at, p.id FROM parked AS p
    WHERE p.tenant = :tenant AND p.is_claimed = 0 AND p.kind = :kind AND p.parked_until <= :now
    ORDER BY p.parked_until, p.id LIMIT :limit
);
