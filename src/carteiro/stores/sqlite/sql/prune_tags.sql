-- Drops the tags by which messages are found. :ids = [id, …]
DELETE FROM message_tags
WHERE (tenant, tag, created_at, message_no) IN (
    SELECT m.tenant, t.value, m.created_at, m.no
    FROM json_each(:ids) AS i CROSS JOIN messages AS m ON m.id = i.value CROSS JOIN json_each(m.tags) AS t
);
