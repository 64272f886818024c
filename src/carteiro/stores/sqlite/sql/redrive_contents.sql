-- Those of the messages whose contents are still there. :ids = [id, …]
SELECT m.id
FROM json_each(:ids) AS i
CROSS JOIN messages AS m ON m.id = i.value
JOIN contents AS c ON c.message_no = m.no;
