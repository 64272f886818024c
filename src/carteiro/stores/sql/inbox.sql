-- name: inbox_list
-- The stored mails, newest first. :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
ORDER BY id DESC
LIMIT :limit;

-- name: inbox_list_of_message
-- The deliveries of a message, newest first. :message; :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
WHERE message_id = :message
ORDER BY id DESC
LIMIT :limit;

-- name: inbox_list_of_tenant
-- The mails of a tenant, newest first. :tenant; :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
WHERE tenant = :tenant
ORDER BY id DESC
LIMIT :limit;

-- name: inbox_prune
-- Deletes the oldest mails that were delivered before a moment: they are in the order of their ids. :before; :limit
DELETE FROM carteiro.inbox
WHERE created_at <= :before AND id IN (SELECT id FROM carteiro.inbox ORDER BY id LIMIT :limit);
