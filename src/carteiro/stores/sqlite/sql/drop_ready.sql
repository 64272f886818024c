-- Waiting jobs whose messages are finished. :ids = [id, …]
DELETE FROM ready
WHERE (tenant, kind, priority, due_at, id) IN (
    SELECT m.tenant, m.kind, m.priority, m.due_at, m.id
    FROM json_each(:ids) AS i CROSS JOIN messages AS m ON m.id = i.value
);
