-- The next mails of the inbox. :after = [id]
SELECT id, message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
WHERE id > (:after ->> 0)
ORDER BY id;
