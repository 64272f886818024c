-- The revisions of messages, and whether their contents are still there. :ids = [id, …]
SELECT m.id, m.revision, c.message_no IS NOT NULL
FROM json_each(:ids) AS i
CROSS JOIN messages AS m ON m.id = i.value
LEFT JOIN contents AS c ON c.message_no = m.no;
