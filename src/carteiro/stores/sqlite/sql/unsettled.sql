-- Those of the ids whose message is not finished. :ids = [id, …]
SELECT i.value
FROM json_each(:ids) AS i JOIN jobs AS j ON j.id = i.value;
