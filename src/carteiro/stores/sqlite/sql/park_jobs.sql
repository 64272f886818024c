-- Jobs wait with no claim on them; parked_until null means ready. :rows = [[id, parked_until, due_at], …]
UPDATE jobs
SET parked_until = r.value ->> 1, due_at = r.value ->> 2, is_claimed = 0, claim_id = NULL, claims = 0
FROM json_each(:rows) AS r
WHERE jobs.id = r.value ->> 0;
