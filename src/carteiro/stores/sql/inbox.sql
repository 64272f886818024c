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

-- name: inbox_find
-- The next mails of all tenants, newest first, without contents. :number of the last one; :limit
SELECT message_id, tenant, to_address, subject, provider_message_id, created_at, id
FROM carteiro.inbox
WHERE id < :number
ORDER BY id DESC
LIMIT :limit;

-- name: inbox_find_of_message
-- The deliveries of a message, newest first, without contents. :message; :limit
SELECT message_id, tenant, to_address, subject, provider_message_id, created_at, id
FROM carteiro.inbox
WHERE message_id = :message
ORDER BY id DESC
LIMIT :limit;

-- name: inbox_find_of_tenant
-- The next mails of a tenant, newest first, without contents. :tenant; :since; :at and :place of the last one; :limit
SELECT message_id, tenant, to_address, subject, provider_message_id, created_at, id
FROM carteiro.inbox
WHERE tenant = :tenant AND created_at >= :since AND (created_at, message_id) < (:at, :place)
ORDER BY created_at DESC, message_id DESC
LIMIT :limit;

-- name: inbox_newest (sqlite)
-- The time of the newest mail of each tenant, null without one. :tenants = [id, …]
SELECT t.value, (SELECT max(i.created_at) FROM inbox AS i WHERE i.tenant = t.value)
FROM json_each(:tenants) AS t;

-- name: inbox_newest (postgres)
-- The time of the newest mail of each tenant, null without one. :tenants = [id, …]
SELECT t.id, (SELECT max(i.created_at) FROM carteiro.inbox AS i WHERE i.tenant = t.id)
FROM unnest(:tenants::text[]) AS t (id);

-- name: inbox_delete
-- Deletes the deliveries of a message. :message; :tenant, in a form that no index has: a message has few mails.
DELETE FROM carteiro.inbox
WHERE message_id = :message AND tenant || '' = :tenant;

-- name: inbox_empty
-- Deletes mails of a tenant. :tenant; :limit
DELETE FROM carteiro.inbox
WHERE id IN (SELECT i.id FROM carteiro.inbox AS i WHERE i.tenant = :tenant ORDER BY i.created_at LIMIT :limit);

-- name: inbox_prune
-- Deletes the oldest mails that were delivered before a moment: they are in the order of their ids. :before; :limit
DELETE FROM carteiro.inbox
WHERE created_at <= :before AND id IN (SELECT id FROM carteiro.inbox ORDER BY id LIMIT :limit);
