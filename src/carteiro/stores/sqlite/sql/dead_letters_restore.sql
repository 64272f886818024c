-- Puts dead letters back whose messages are still dead, and have none. :rows = [[message id, tenant, reason, failure,
-- failed attempts, failed_at, enqueued_at, moved_at, ttl_ms], …]
INSERT INTO dead_letters (
    message_id, tenant, kind, reason, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms
)
SELECT
    m.id, m.tenant, m.kind, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6, r.value ->> 7,
    r.value ->> 8
FROM json_each(:rows) AS r CROSS JOIN messages AS m ON m.id = r.value ->> 0
WHERE m.tenant = r.value ->> 1 AND m.state IN ('FAILED', 'EXPIRED')
ON CONFLICT (message_id) DO NOTHING;
