-- Notes when keys were used last. :ids = [id, …]; :now
UPDATE access_keys
SET last_used_at = :now
WHERE id IN (SELECT value FROM json_each(:ids));
