-- Whether any message to a recipient is left. :recipient; :tenant; :email
SELECT
    EXISTS (SELECT 1 FROM messages WHERE recipient_id = :recipient AND tenant = :tenant)
    OR EXISTS (SELECT 1 FROM messages WHERE to_address = :email AND tenant = :tenant AND recipient_id IS NULL);
