-- The mails that were taken over, newest first. :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
ORDER BY id DESC
LIMIT :limit;
