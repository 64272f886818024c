-- The mails of a tenant, newest first. $1 tenant; $2 limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
WHERE tenant = $1::text
ORDER BY id DESC
LIMIT $2::bigint;
