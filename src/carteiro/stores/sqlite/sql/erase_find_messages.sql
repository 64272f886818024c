-- As `erase_find`, where jobs are kept elsewhere: past what is being attempted, and what is busy there.
-- :tenant; :now; :longest; :busy = [id, …]; :limit
SELECT m.id, m.kind, 0
FROM (
    SELECT id, kind, state, held_until FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT id, kind, state, held_until FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
) AS m
WHERE
    NOT coalesce(m.state = 'SENT_ATTEMPT' AND m.held_until > :now AND m.held_until <= :now + :longest, 0)
    AND m.id NOT IN (SELECT value FROM json_each(:busy))
LIMIT :limit;
