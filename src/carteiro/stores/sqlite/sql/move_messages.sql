-- What was accepted of the next messages. :after = [message no]
SELECT
    no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, external_id, recipient_id, to_address,
    subject, template_type, tags, created_at
FROM messages
WHERE no > (:after ->> 0)
ORDER BY no;
