-- The deliveries of a message, newest first. :message; :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
WHERE message_id = :message
ORDER BY id DESC
LIMIT :limit;
