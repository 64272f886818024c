-- Drops the contents of messages. :ids = [id, …]
DELETE FROM contents
WHERE message_no IN (SELECT m.no FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value);
