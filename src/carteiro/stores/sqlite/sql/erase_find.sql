-- The next messages of a tenant that are not in flight, each with its kind and whether it has a job.
-- :tenant; :now; :longest; :limit
SELECT m.id, m.kind, m.finished_at IS NULL
FROM (
    SELECT id, kind, finished_at FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT id, kind, finished_at FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
) AS m LEFT JOIN parked AS p ON p.id = m.id
WHERE NOT coalesce(p.is_claimed = 1 AND p.parked_until > :now AND p.parked_until <= :now + :longest, 0)
LIMIT :limit;
