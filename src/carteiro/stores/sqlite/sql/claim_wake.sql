-- Seats whose alarm has rung take their place in the ring, no further back than V; a paused or disabled tenant sleeps on.
-- :kinds = [kind, …]; :turn; :now; :far
UPDATE seats
SET
    vt = CASE
        WHEN t.paused OR t.disabled THEN seats.vt
        ELSE max(seats.vt, coalesce((SELECT c.v FROM ring_clock AS c WHERE c.kind = seats.kind), 0))
    END,
    since_turn = :turn,
    wake_at = CASE WHEN t.paused OR t.disabled THEN :far END
FROM tenants AS t
WHERE seats.kind IN (SELECT value FROM json_each(:kinds)) AND seats.wake_at <= :now AND t.id = seats.tenant;
