-- Unfinished messages after a number, as jobs. :now; :longest; :after; :limit
SELECT
    id, kind, tenant, priority, due_at,
    iif(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, held_until, due_at), no
FROM messages
WHERE no > :after AND finished_at IS NULL
ORDER BY no
LIMIT :limit;
