-- Dead letters, newest first; null matches all. :tenant; :reason; :id; :limit
SELECT
    d.message_id, d.tenant, d.kind, coalesce(c.content, ''), d.reason, d.failed_attempts, d.failure, d.failed_at,
    d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at
FROM dead_letters AS d
LEFT JOIN messages AS m ON m.id = d.message_id
LEFT JOIN contents AS c ON c.message_no = m.no
WHERE
    (:tenant IS NULL OR d.tenant = :tenant) AND (:reason IS NULL OR d.reason = :reason)
    AND (:id IS NULL OR d.message_id = :id)
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;
