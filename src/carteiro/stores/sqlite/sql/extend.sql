-- Pushes the end of claims on, never back; answers the leases that still stand. :leases = [[id, claim], …]; :until
UPDATE jobs
SET parked_until = max(parked_until, :until)
FROM json_each(:leases) AS l
WHERE jobs.id = l.value ->> 0 AND jobs.claim_id = l.value ->> 1
RETURNING jobs.id, jobs.claim_id;
