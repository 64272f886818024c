-- The next unfinished messages as jobs, in the order of their expiry. :now; :longest; :expires_at, :id; :limit
SELECT
    id, kind, tenant, priority, due_at,
    iif(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, held_until, due_at), expires_at
FROM messages INDEXED BY messages_by_expiry
WHERE finished_at IS NULL AND (expires_at, id) > (:expires_at, :id)
ORDER BY expires_at, id
LIMIT :limit;
