-- When to look at seats again that leave the ring: at the end of their first park. :seats = [[kind, tenant], …];
-- :now; :longest; :far
SELECT
    s.key,
    min(
        coalesce((
            SELECT min(j.parked_until) FROM jobs AS j
            WHERE
                j.tenant = s.value ->> 1 AND j.is_claimed = 0 AND j.kind = s.value ->> 0
                AND j.parked_until IS NOT NULL
        ), :far),
        coalesce((
            SELECT min(j.parked_until) FROM jobs AS j
            WHERE
                j.tenant = s.value ->> 1 AND j.is_claimed = 1 AND j.kind = s.value ->> 0
                AND j.parked_until IS NOT NULL
        ), :far),
        iif(EXISTS (
            SELECT 1 FROM jobs AS j
            WHERE
                j.tenant = s.value ->> 1 AND j.is_claimed = 1 AND j.kind = s.value ->> 0
                AND j.parked_until > :now + :longest
        ), :now, :far)
    )
FROM json_each(:seats) AS s;
