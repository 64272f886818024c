-- name: redrive_contents
-- Those of the messages whose contents are still there. $1 = [number, …]
SELECT message_no
FROM carteiro.contents
WHERE message_no = ANY (ARRAY(SELECT unnest($1::bigint[])));

-- name: redrive_lock
-- Holds the entries of messages: nobody changes or prunes them until the transaction ends. $1 = [id, …]
SELECT FROM carteiro.entries
WHERE message_no = ANY (ARRAY(SELECT m.no FROM carteiro.messages AS m WHERE m.id = ANY (ARRAY(SELECT unnest($1::text[])))))
ORDER BY message_no
FOR UPDATE;

-- name: redrive_mark
-- Marks dead letters as on their way. $1 = [id, …]; $2 now
WITH mine AS (
    SELECT message_id FROM carteiro.dead_letters
    WHERE message_id = ANY ($1::text[])
    ORDER BY message_id
    FOR UPDATE
)
UPDATE carteiro.dead_letters
SET redriven_at = $2
WHERE message_id = ANY (ARRAY(SELECT message_id FROM mine));

-- name: redrive_put
-- Makes the jobs of messages claimable now, and leaves notes of them. $1 = [number, …]; $2 now
WITH put AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT m.tenant, m.kind, carteiro.rank(m.priority, e.due_at), m.id, m.no
    FROM unnest($1::bigint[]) AS i (no)
    CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = i.no LIMIT 1) AS m
    CROSS JOIN LATERAL (SELECT n.due_at FROM carteiro.entries AS n WHERE n.message_no = i.no LIMIT 1) AS e
    RETURNING tenant, kind, rank
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
SELECT kind, tenant, count(*), $2, min(rank)
FROM put
GROUP BY kind, tenant;

-- name: revise
-- Gives a message new content, also where the old one is gone, and says for whom it is now.
-- $1 number; $2 content; $3 to; $4 subject; $5 recipient
WITH written AS (
    INSERT INTO carteiro.contents (message_no, content)
    VALUES ($1, $2)
    ON CONFLICT (message_no) DO UPDATE SET content = excluded.content
)
UPDATE carteiro.messages
SET to_address = $3, subject = $4, recipient_id = $5
WHERE no = $1;
