-- How the tenants of a kind fare, least virtual time first. :kind; :now; :longest
SELECT
    s.tenant, s.last_processed_at, coalesce(c.turn, 0),
    iif(s.wake_at IS NULL, max(s.last_turn, s.since_turn), NULL), s.processed, s.consecutive, s.jobs,
    (
        SELECT count(*) FROM parked AS p
        WHERE
            p.tenant = s.tenant AND p.is_claimed = 1 AND p.kind = s.kind
            AND p.parked_until > :now AND p.parked_until <= :now + :longest
    ),
    (SELECT count(*) FROM seats AS r WHERE r.kind = :kind AND r.wake_at IS NULL)
FROM seats AS s LEFT JOIN ring_clock AS c ON c.kind = s.kind
WHERE s.kind = :kind
ORDER BY s.vt, s.last_turn, s.tenant;
