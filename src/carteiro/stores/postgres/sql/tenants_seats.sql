-- The seats of tenants, each with the V of its kind and what a job costs its tenant so far. $1 tenants
SELECT s.kind, s.tenant, s.vt, s.wake_at IS NULL, coalesce(c.v, 0), t.stride
FROM carteiro.seats AS s
JOIN carteiro.tenants AS t ON t.id = s.tenant
LEFT JOIN carteiro.ring_clock AS c ON c.kind = s.kind
WHERE s.tenant = ANY ($1::text[]);
