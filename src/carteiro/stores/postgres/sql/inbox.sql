-- name: inbox_keep
-- Takes mails over: each row is one delivery.
-- Arrays: $1 message ids; $2 tenants; $3 to; $4 subjects; $5 contents; $6 provider ids; then $7 now, if it is not the
-- server's own: when they are taken over, not when they were handed in.
INSERT INTO carteiro.inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT m.message_id, m.tenant, m.to_address, m.subject, m.content, m.provider_id, coalesce($7::bigint, carteiro.now_ms())
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY
    AS m (message_id, tenant, to_address, subject, content, provider_id, place)
ORDER BY m.place;

-- name: inbox_list
-- The mails that were taken over, newest first. $1 limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
ORDER BY id DESC
LIMIT $1::bigint;

-- name: inbox_list_of_message
-- The deliveries of a message, newest first. $1 message; $2 limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
WHERE message_id = $1::text
ORDER BY id DESC
LIMIT $2::bigint;

-- name: inbox_list_of_tenant
-- The mails of a tenant, newest first. $1 tenant; $2 limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
WHERE tenant = $1::text
ORDER BY id DESC
LIMIT $2::bigint;
