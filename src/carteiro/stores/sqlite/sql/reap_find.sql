-- Claimed jobs whose lease or hold ran out, tenant by tenant: the delayed ones of the backlog are not looked at.
-- :now; :longest; :limit
SELECT p.id, p.kind, p.tenant
FROM tenants AS t CROSS JOIN parked AS p ON p.tenant = t.id AND p.is_claimed = 1
WHERE p.parked_until <= :now OR p.parked_until > :now + :longest
ORDER BY p.parked_until, p.id
LIMIT :limit;
