-- name: inbox_keep
-- Stores mails: each row is one delivery.
-- :rows = [[message id, tenant, to, subject, content, provider id], …]; :now
INSERT INTO inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now
FROM json_each(:rows);
