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

-- name: inbox_keep (sqlite)
-- Stores mails: each row is one delivery.
-- :rows = [[message id, tenant, to, subject, content, provider id], …]; :now
INSERT INTO inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now
FROM json_each(:rows);

-- name: inbox_keep (postgres)
-- Stores mails: each row is one delivery. :rows = [[message id, tenant, to, subject, content, provider id], …]; :now =
-- time of the delivery, not of the acceptance; null: the server's time.
INSERT INTO carteiro.inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT m.message_id, m.tenant, m.to_address, m.subject, m.content, m.provider_id, coalesce(:now::bigint, carteiro.now_ms())
FROM unnest(:rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[])
    WITH ORDINALITY AS m (message_id, tenant, to_address, subject, content, provider_id, place)
ORDER BY m.place;
