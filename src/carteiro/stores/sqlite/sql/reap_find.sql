-- Claimed jobs whose lease or hold ran out, tenant by tenant: the delayed ones of the backlog are not looked at.
-- :now; :longest; :limit
SELECT j.id, j.kind, j.tenant
FROM tenants AS t CROSS JOIN jobs AS j ON j.tenant = t.id AND j.is_claimed = 1
WHERE j.parked_until IS NOT NULL AND (j.parked_until <= :now OR j.parked_until > :now + :longest)
ORDER BY j.parked_until, j.id
LIMIT :limit;
