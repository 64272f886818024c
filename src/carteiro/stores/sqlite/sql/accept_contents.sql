-- Adds the contents of new messages. :rows = [[message id, content], …]
INSERT INTO contents (message_no, content)
SELECT m.no, r.value ->> 1
FROM json_each(:rows) AS r CROSS JOIN messages AS m ON m.id = r.value ->> 0;
