-- Which of the seats have parked jobs whose time has come. :seats = [[kind, tenant], …]; :now; :longest
SELECT s.key
FROM json_each(:seats) AS s
WHERE
    EXISTS (
        SELECT 1 FROM jobs AS j
        WHERE j.tenant = s.value ->> 1 AND j.is_claimed = 0 AND j.kind = s.value ->> 0 AND j.parked_until <= :now
    )
    OR EXISTS (
        SELECT 1 FROM jobs AS j
        WHERE j.tenant = s.value ->> 1 AND j.is_claimed = 1 AND j.kind = s.value ->> 0 AND j.parked_until <= :now
    )
    OR EXISTS (
        SELECT 1 FROM jobs AS j
        WHERE
            j.tenant = s.value ->> 1 AND j.is_claimed = 1 AND j.kind = s.value ->> 0
            AND j.parked_until > :now + :longest
    );
