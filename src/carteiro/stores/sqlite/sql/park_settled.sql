-- Jobs wait with no claim on them, until they are due. :rows = [[id, due_at], …]
UPDATE parked
SET parked_until = r.value ->> 1, due_at = r.value ->> 1, is_claimed = 0, claim_id = NULL, claims = 0
FROM json_each(:rows) AS r
WHERE parked.id = r.value ->> 0;
