-- Which of the ids are dead letters, and whether they are on their way already. :ids = [id, …]
SELECT d.message_id, d.redriven_at IS NOT NULL
FROM json_each(:ids) AS i
JOIN dead_letters AS d ON d.message_id = i.value;
