-- Those of the ids that are accepted already. :ids = [id, …]
SELECT m.id, m.created_at, m.recipient_id, m.request_id
FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value;
