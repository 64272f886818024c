-- The deliveries of a message, newest first. $1 message; $2 limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
WHERE message_id = $1::text
ORDER BY id DESC
LIMIT $2::bigint;
