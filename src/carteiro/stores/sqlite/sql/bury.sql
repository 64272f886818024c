-- Keeps dead letters for people; a new failure of a redriven one updates its entry.
-- :rows = [[message id, reason, failure, failed attempts], …]; :now; :ttl_ms
INSERT INTO dead_letters (
    message_id, tenant, kind, reason, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms
)
SELECT
    m.id, m.tenant, m.kind, r.value ->> 1, r.value ->> 2, r.value ->> 3, :now, m.created_at, :now, :ttl_ms
FROM json_each(:rows) AS r JOIN messages AS m ON m.id = r.value ->> 0
WHERE true
ON CONFLICT (message_id) DO UPDATE
SET reason = excluded.reason, failure = excluded.failure, failed_attempts = excluded.failed_attempts,
    failed_at = excluded.failed_at, moved_at = excluded.moved_at, ttl_ms = excluded.ttl_ms, redriven_at = NULL;
