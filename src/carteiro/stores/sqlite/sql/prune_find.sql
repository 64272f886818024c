-- The next page of messages in order of their ids, and what of each is past its retention.
-- :after; :limit; :bodies_before; :histories_before (null keeps)
SELECT
    m.id,
    m.finished_at <= :bodies_before AND d.message_id IS NULL,
    m.finished_at <= :histories_before AND d.message_id IS NULL
FROM messages AS m LEFT JOIN dead_letters AS d ON d.message_id = m.id
WHERE m.id > :after
ORDER BY m.id
LIMIT :limit;
