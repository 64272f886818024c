-- Gives claimed jobs back as if they had never been claimed; a declared attempt is not given back.
-- :leases = [[id, claim], …]; :parked_until
UPDATE jobs
SET parked_until = :parked_until, is_claimed = 0, claim_id = NULL, claims = max(0, claims - 1)
FROM json_each(:leases) AS l
WHERE
    jobs.id = l.value ->> 0 AND jobs.claim_id = l.value ->> 1
    AND NOT EXISTS (
        SELECT 1 FROM messages AS m
        WHERE m.id = jobs.id AND m.state = 'SENT_ATTEMPT' AND m.holder = jobs.claim_id
    )
RETURNING jobs.kind, jobs.tenant;
