-- The mails that were taken over, newest first. :message, null matches all; :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
WHERE :message IS NULL OR message_id = :message
ORDER BY id DESC
LIMIT :limit;
