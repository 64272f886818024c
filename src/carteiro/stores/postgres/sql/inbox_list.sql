-- The mails that were taken over, newest first. $1 limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM carteiro.inbox
ORDER BY id DESC
LIMIT $1::bigint;
