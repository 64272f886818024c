-- Moves seats; a walk begins before them. The caller holds the lock of the ring.
-- Arrays: $1 kinds; $2 tenants; $3 vt; $4 wake_at, null in the ring
WITH moved AS (
    UPDATE carteiro.seats AS s
    SET n = s.n + 1, vt = m.vt,
        wake_at = CASE WHEN m.wake_at IS NOT NULL THEN greatest(
            m.wake_at, (SELECT c.seen_at - 1000 FROM carteiro.ring_clock AS c WHERE c.kind = m.kind)
        ) END
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS m (kind, tenant, vt, wake_at)
    WHERE s.kind = m.kind AND s.tenant = m.tenant
    RETURNING s.kind, s.vt
)
UPDATE carteiro.ring_clock AS c
SET n = c.n + 1, least_vt = least(c.least_vt, m.vt)
FROM (SELECT kind, min(vt) AS vt FROM moved GROUP BY kind) AS m
WHERE c.kind = m.kind AND c.least_vt > m.vt;
