-- The seats of a tenant, each with the V of its kind. :tenant
SELECT s.kind, s.vt, s.wake_at IS NULL, coalesce(c.v, 0)
FROM seats AS s LEFT JOIN ring_clock AS c ON c.kind = s.kind
WHERE s.tenant = :tenant;
