-- Dead letters with the contents that the ledger has, in the order asked. :ids = [id, …]
SELECT
    d.message_id, d.tenant, d.kind, coalesce(c.content, ''), d.reason, d.failed_attempts, d.failure, d.failed_at,
    d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at
FROM json_each(:ids) AS i
CROSS JOIN dead_letters AS d ON d.message_id = i.value
LEFT JOIN messages AS m ON m.id = d.message_id
LEFT JOIN contents AS c ON c.message_no = m.no
ORDER BY i.key;
