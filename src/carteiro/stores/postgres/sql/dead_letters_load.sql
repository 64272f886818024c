-- Dead letters with the contents that the ledger has, in the order asked. $1 = [id, …]
SELECT
    d.message_id, d.tenant, d.kind, coalesce(c.content, ''), d.reason, d.failed_attempts, d.failure, d.failed_at,
    d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at
FROM unnest($1::text[]) WITH ORDINALITY AS i (id, place)
CROSS JOIN LATERAL (SELECT * FROM carteiro.dead_letters AS n WHERE n.message_id = i.id LIMIT 1) AS d
LEFT JOIN LATERAL (SELECT n.content FROM carteiro.contents AS n WHERE n.message_no = d.message_no LIMIT 1) AS c ON true
ORDER BY i.place;
