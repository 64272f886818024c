-- Gives claimed jobs back as if they had never been claimed; a declared attempt is not given back.
-- :leases = [[id, claim], …]; :parked_until
UPDATE parked
SET parked_until = :parked_until, is_claimed = 0, claim_id = NULL, claims = max(0, claims - 1)
FROM json_each(:leases) AS l
WHERE
    parked.id = l.value ->> 0 AND parked.claim_id = l.value ->> 1
    AND NOT EXISTS (
        SELECT 1 FROM messages AS m
        WHERE m.no = parked.message_no AND m.state = 'SENT_ATTEMPT' AND m.holder = parked.claim_id
    )
RETURNING parked.kind, parked.tenant, parked.id;
