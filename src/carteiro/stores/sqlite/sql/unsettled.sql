-- Those of the ids whose message is not finished. :ids = [id, …]
SELECT i.value
FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value
WHERE m.finished_at IS NULL;
