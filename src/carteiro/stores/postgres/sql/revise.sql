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
