-- When to look at seats again that leave the ring: at the end of their first park. :seats = [[kind, tenant], …];
-- :now; :longest; :far
SELECT
    s.key,
    min(
        coalesce((
            SELECT min(p.parked_until) FROM parked AS p
            WHERE p.tenant = s.value ->> 1 AND p.is_claimed = 0 AND p.kind = s.value ->> 0
        ), :far),
        coalesce((
            SELECT min(p.parked_until) FROM parked AS p
            WHERE p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
        ), :far),
        iif(EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
                AND p.parked_until > :now + :longest
        ), :now, :far)
    )
FROM json_each(:seats) AS s;
