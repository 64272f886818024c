-- name: wake_look
-- For each kind: whether a seat is in the ring, and when the next alarm rings.
WITH RECURSIVE kinds (kind) AS (
    SELECT min(kind) FROM seats
    UNION ALL
    SELECT (SELECT min(s.kind) FROM seats AS s WHERE s.kind > k.kind) FROM kinds AS k WHERE k.kind IS NOT NULL
)
SELECT
    k.kind,
    EXISTS (SELECT 1 FROM seats AS s WHERE s.kind = k.kind AND s.wake_at IS NULL),
    (SELECT min(s.wake_at) FROM seats AS s WHERE s.kind = k.kind AND s.wake_at IS NOT NULL)
FROM kinds AS k
WHERE k.kind IS NOT NULL;
