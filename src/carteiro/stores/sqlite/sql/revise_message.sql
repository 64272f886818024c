-- Says for whom a message is now. :id; :to; :subject; :recipient_id
UPDATE messages
SET to_address = :to, subject = :subject, recipient_id = :recipient_id
WHERE id = :id;
