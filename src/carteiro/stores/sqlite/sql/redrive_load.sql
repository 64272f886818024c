-- Which of the ids are dead letters, whether they are on their way already, and their priority. :ids = [id, …]
SELECT d.message_id, d.redriven_at IS NOT NULL, m.priority
FROM json_each(:ids) AS i
JOIN dead_letters AS d ON d.message_id = i.value
JOIN messages AS m ON m.id = i.value;
