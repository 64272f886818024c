-- Adds the contents of new messages. :rows = [[message id, content], …]
INSERT INTO contents (message_id, content)
SELECT value ->> 0, value ->> 1
FROM json_each(:rows);
