-- The next dead letters of messages that there are. :after = [message id]
SELECT
    d.message_id, m.no AS message_no, d.tenant, d.kind, d.reason, d.code, d.category, d.failure, d.failed_attempts,
    d.failed_at, d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at
FROM dead_letters AS d CROSS JOIN messages AS m ON m.id = d.message_id
WHERE d.message_id > (:after ->> 0)
ORDER BY d.message_id;
