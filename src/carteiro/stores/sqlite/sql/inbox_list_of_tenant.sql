-- The mails of a tenant, newest first. :tenant; :limit
SELECT message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
WHERE tenant = :tenant
ORDER BY id DESC
LIMIT :limit;
