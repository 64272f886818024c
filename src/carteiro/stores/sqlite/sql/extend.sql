-- Pushes the end of claims on, never back; answers the leases that still stand. :leases = [[id, claim], …]; :until
UPDATE parked
SET parked_until = max(parked_until, :until)
FROM json_each(:leases) AS l
WHERE parked.id = l.value ->> 0 AND parked.claim_id = l.value ->> 1
RETURNING parked.id, parked.claim_id;
