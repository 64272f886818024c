-- Gives a message new content, also where the old one is gone. :id; :content
INSERT INTO contents (message_no, content)
SELECT no, :content
FROM messages
WHERE id = :id
ON CONFLICT (message_no) DO UPDATE
SET content = excluded.content;
