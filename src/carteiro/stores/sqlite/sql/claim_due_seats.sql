-- Which of the seats have parked jobs whose time has come: delayed ones, and claimed ones whose lease ran out or is
-- further ahead than any can be. :seats = [[kind, tenant], …]; :now; :longest
SELECT key, is_delayed, is_lost
FROM (
    SELECT
        s.key,
        EXISTS (
            SELECT 1 FROM jobs AS j
            WHERE
                j.tenant = s.value ->> 1 AND j.is_claimed = 0 AND j.kind = s.value ->> 0
                AND j.parked_until <= :now
        ) AS is_delayed,
        EXISTS (
            SELECT 1 FROM jobs AS j
            WHERE
                j.tenant = s.value ->> 1 AND j.is_claimed = 1 AND j.kind = s.value ->> 0
                AND j.parked_until <= :now
        )
        OR EXISTS (
            SELECT 1 FROM jobs AS j
            WHERE
                j.tenant = s.value ->> 1 AND j.is_claimed = 1 AND j.kind = s.value ->> 0
                AND j.parked_until > :now + :longest
        ) AS is_lost
    FROM json_each(:seats) AS s
)
WHERE is_delayed OR is_lost;
