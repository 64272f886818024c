-- Finished messages to a recipient: those that name it, and those to its address that name nobody.
-- :recipient; :tenant; :email; :limit
SELECT id FROM messages
WHERE recipient_id = :recipient AND tenant = :tenant AND finished_at IS NOT NULL
UNION ALL
SELECT id FROM messages
WHERE to_address = :email AND tenant = :tenant AND recipient_id IS NULL AND finished_at IS NOT NULL
LIMIT :limit;
