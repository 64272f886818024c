-- name: redrive_contents
-- Those of the messages whose contents are still there. :ids = [id, …]
SELECT m.id
FROM json_each(:ids) AS i
CROSS JOIN messages AS m ON m.id = i.value
JOIN contents AS c ON c.message_no = m.no;

-- name: redrive_mark
-- Marks dead letters as on their way. :ids = [id, …]; :now
UPDATE dead_letters
SET redriven_at = :now
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: revise_content
-- Gives a message new content, also where the old one is gone. :id; :content
INSERT INTO contents (message_no, content)
SELECT no, :content
FROM messages
WHERE id = :id
ON CONFLICT (message_no) DO UPDATE
SET content = excluded.content;

-- name: revise_message
-- Says for whom a message is now. :id; :to; :subject; :recipient_id
UPDATE messages
SET to_address = :to, subject = :subject, recipient_id = :recipient_id
WHERE id = :id;
