-- Shows messages in the table queue. Arrays: $1 message id; $2 user; $3 most retries
INSERT INTO carteiro.queue_rows (id, message_no, tenant, user_id, max_retries)
SELECT m.id::uuid, m.no, m.tenant, r.user_id, r.max_retries
FROM unnest($1::text[], $2::uuid[], $3::integer[]) AS r (id, user_id, max_retries)
CROSS JOIN LATERAL (SELECT n.id, n.no, n.tenant FROM carteiro.messages AS n WHERE n.id = r.id LIMIT 1) AS m
ON CONFLICT DO NOTHING;
