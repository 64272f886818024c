-- Readies the jobs, whoever had them. :ids = [id, …]
UPDATE jobs
SET parked_until = NULL, is_claimed = 0, claim_id = NULL
WHERE id IN (SELECT value FROM json_each(:ids));
