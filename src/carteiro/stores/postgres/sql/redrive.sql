-- name: redrive_contents
-- Those of the messages whose contents are still there. :numbers = [number, …]
SELECT message_no
FROM carteiro.contents
WHERE message_no = ANY (ARRAY(SELECT unnest(:numbers::bigint[])));

-- name: redrive_lock
-- Holds the entries of messages: nobody changes or prunes them until the transaction ends. :ids = [id, …]
SELECT FROM carteiro.entries
WHERE
    message_no = ANY (ARRAY(
        SELECT m.no FROM carteiro.messages AS m WHERE m.id = ANY (ARRAY(SELECT unnest(:ids::text[])))
    ))
ORDER BY message_no
FOR UPDATE;

-- name: redrive_mark
-- Marks dead letters as on their way. :ids = [id, …]; :now
WITH mine AS (
    SELECT message_id FROM carteiro.dead_letters
    WHERE message_id = ANY (:ids::text[])
    ORDER BY message_id
    FOR UPDATE
)
UPDATE carteiro.dead_letters
SET redriven_at = :now
WHERE message_id = ANY (ARRAY(SELECT message_id FROM mine));

-- name: redrive_put
-- Makes the jobs of messages claimable now, and leaves notes of them. :numbers = [number, …]; :now
WITH put AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT m.tenant, m.kind, carteiro.rank(m.priority, e.due_at), m.id, m.no
    FROM unnest(:numbers::bigint[]) AS i (no)
    CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = i.no LIMIT 1) AS m
    CROSS JOIN LATERAL (SELECT n.due_at FROM carteiro.entries AS n WHERE n.message_no = i.no LIMIT 1) AS e
    RETURNING tenant, kind, rank
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
SELECT kind, tenant, count(*), :now::bigint, min(rank)
FROM put
GROUP BY kind, tenant;

-- name: revise
-- Gives a message new content, also where the old one is gone, and says for whom it is now.
-- :number; :content; :to; :subject; :recipient_id
WITH written AS (
    INSERT INTO carteiro.contents (message_no, content)
    VALUES (:number, :content)
    ON CONFLICT (message_no) DO UPDATE SET content = excluded.content
)
UPDATE carteiro.messages
SET to_address = :to, subject = :subject, recipient_id = :recipient_id
WHERE no = :number;
