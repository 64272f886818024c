-- Unfinished messages to a recipient (those that name it, and those to its address that name nobody) that nobody asked
-- to cancel. :recipient; :tenant; :email; :limit
SELECT id FROM messages
WHERE recipient_id = :recipient AND tenant = :tenant AND finished_at IS NULL AND cancel_requested_at IS NULL
UNION ALL
SELECT id FROM messages
WHERE
    to_address = :email AND tenant = :tenant AND recipient_id IS NULL
    AND finished_at IS NULL AND cancel_requested_at IS NULL
LIMIT :limit;
