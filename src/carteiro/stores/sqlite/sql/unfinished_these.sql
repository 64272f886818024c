-- Those of the messages that are unfinished, as jobs. :now; :longest; :ids = [id, …]
SELECT
    m.id, m.kind, m.tenant, m.priority, m.due_at,
    iif(
        m.state = 'SENT_ATTEMPT' AND m.held_until > :now AND m.held_until <= :now + :longest, m.held_until, m.due_at
    )
FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value
WHERE m.finished_at IS NULL;
