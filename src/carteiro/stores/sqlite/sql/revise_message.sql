-- Counts a revision of a message, and says for whom it is now. :id; :to; :subject; :recipient_id
UPDATE messages
SET revision = revision + 1, to_address = :to, subject = :subject, recipient_id = :recipient_id
WHERE id = :id;
