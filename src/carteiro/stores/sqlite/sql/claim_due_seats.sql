-- Which of the seats have parked jobs whose time has come: delayed ones, and claimed ones whose lease ran out or is
-- further ahead than any can be. :seats = [[kind, tenant], …]; :now; :longest
SELECT key, is_delayed, is_lost
FROM (
    SELECT
        s.key,
        EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 0 AND p.kind = s.value ->> 0
                AND p.parked_until <= :now
        ) AS is_delayed,
        EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
                AND p.parked_until <= :now
        )
        OR EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
                AND p.parked_until > :now + :longest
        ) AS is_lost
    FROM json_each(:seats) AS s
)
WHERE is_delayed OR is_lost;
