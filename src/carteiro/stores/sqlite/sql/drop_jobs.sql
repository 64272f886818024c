-- Finished messages leave the queue at once. :ids = [id, …]
DELETE FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids));
