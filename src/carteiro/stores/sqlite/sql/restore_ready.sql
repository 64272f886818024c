-- A job for every unfinished message that is due and not being attempted. :now; :longest
INSERT INTO ready (tenant, kind, priority, due_at, id, message_no)
SELECT tenant, kind, priority, due_at, id, no
FROM messages
WHERE
    finished_at IS NULL AND due_at <= :now
    AND NOT coalesce(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, 0);
