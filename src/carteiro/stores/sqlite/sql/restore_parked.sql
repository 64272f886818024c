-- A job for every unfinished message that waits: for its time, or for the end of an attempt. :now; :longest
INSERT INTO parked (id, message_no, kind, tenant, priority, due_at, parked_until)
SELECT id, no, kind, tenant, priority, due_at, max(due_at, iif(coalesce(held_until, 0) <= :now + :longest, coalesce(held_until, 0), 0))
FROM messages
WHERE
    finished_at IS NULL
    AND (
        due_at > :now
        OR coalesce(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, 0)
    );
