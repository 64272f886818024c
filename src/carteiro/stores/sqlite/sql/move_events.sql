-- The next events of messages that there are. :after = [id]
SELECT e.id, m.no AS message_no, e.type, e.metadata, e.created_at
FROM events AS e CROSS JOIN messages AS m ON m.id = e.message_id
WHERE e.id > (:after ->> 0)
ORDER BY e.id;
