-- name: inbox_keep
-- Takes mails over: each row is one delivery.
-- :rows = [[message id, tenant, to, subject, content, provider id], …]; :now
INSERT INTO inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now
FROM json_each(:rows);

-- name: inbox_list
-- The mails that were taken over, newest first. :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
ORDER BY id DESC
LIMIT :limit;

-- name: inbox_list_of_message
-- The deliveries of a message, newest first. :message; :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
WHERE message_id = :message
ORDER BY id DESC
LIMIT :limit;

-- name: inbox_list_of_tenant
-- The mails of a tenant, newest first. :tenant; :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
WHERE tenant = :tenant
ORDER BY id DESC
LIMIT :limit;
