-- name: redrive_contents
-- Those of the messages whose contents are still there. :numbers = [number, …]
SELECT message_no
FROM contents
WHERE message_no IN (SELECT value FROM json_each(:numbers));

-- name: redrive_mark
-- Marks dead letters as on their way. :ids = [id, …]; :now
UPDATE dead_letters
SET redriven_at = :now
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: redrive_put
-- Makes the jobs of messages claimable now, and counts them at their seats. :numbers = [number, …]; :now
INSERT INTO ready (tenant, kind, priority, due_at, id, message_no)
SELECT m.tenant, m.kind, m.priority, m.due_at, m.id, m.no
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value;

INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT m.kind, m.tenant, :now, count(*)
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value
WHERE true
GROUP BY m.kind, m.tenant
ON CONFLICT (kind, tenant) DO UPDATE
SET wake_at = min(wake_at, excluded.wake_at), jobs = jobs + excluded.jobs;

-- name: revise
-- Gives a message new content, also where the old one is gone, and says for whom it is now.
-- :number; :content; :to; :subject; :recipient_id
INSERT INTO contents (message_no, content)
VALUES (:number, :content)
ON CONFLICT (message_no) DO UPDATE SET content = excluded.content;

UPDATE messages
SET to_address = :to, subject = :subject, recipient_id = :recipient_id
WHERE no = :number;
