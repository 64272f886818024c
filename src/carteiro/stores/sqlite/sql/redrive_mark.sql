-- Marks dead letters as on their way. :ids = [id, …]; :now
UPDATE dead_letters
SET redriven_at = :now
WHERE message_id IN (SELECT value FROM json_each(:ids));
