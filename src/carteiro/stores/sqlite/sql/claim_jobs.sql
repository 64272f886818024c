-- Leases the jobs. :ids = [id, …]; :claim; :until
UPDATE jobs
SET claim_id = :claim, is_claimed = 1, parked_until = :until, claims = claims + 1
WHERE id IN (SELECT value FROM json_each(:ids));
