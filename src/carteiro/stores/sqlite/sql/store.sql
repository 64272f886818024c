-- name: extend
-- Extends claims, never shortens one; returns the valid leases. :leases = [[id, claim], …]; :until
UPDATE parked
SET parked_until = max(parked_until, :until)
FROM json_each(:leases) AS l
WHERE parked.id = l.value ->> 0 AND parked.claim_id = l.value ->> 1
RETURNING parked.id, parked.claim_id;

-- name: extend_holds
-- Extends the holds of declared attempts like their claims, never shortens one. :leases = [[id, claim], …], valid; :until
UPDATE messages
SET held_until = max(held_until, :until)
FROM json_each(:leases) AS l
WHERE
    messages.id = l.value ->> 0 AND messages.holder = l.value ->> 1
    AND messages.state = 'SENT_ATTEMPT' AND messages.held_until IS NOT NULL;

-- name: reap_find
-- Claimed jobs with an expired lease or hold, tenant by tenant: delayed jobs are not read.
-- :now; :longest; :limit
SELECT p.id, p.kind, p.tenant
FROM tenants AS t CROSS JOIN parked AS p ON p.tenant = t.id AND p.is_claimed = 1
WHERE p.parked_until <= :now OR p.parked_until > :now + :longest
ORDER BY p.parked_until, p.id
LIMIT :limit;

-- name: refund_draws
-- Stores the draws from the send limits of kinds. :rows = [[kind, draws], …]
UPDATE ring_clock
SET draws = r.value ->> 1
FROM json_each(:rows) AS r
WHERE ring_clock.kind = r.value ->> 0;

-- name: refund_limits
-- The draws from the send limits of kinds. :kinds = [kind, …]
SELECT kind, draws
FROM ring_clock
WHERE kind IN (SELECT value FROM json_each(:kinds)) AND limit_count IS NOT NULL;

-- name: refund_rates
-- The send rates of tenants. :ids = [id, …]
SELECT t.id, t.rate_per_second
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: refund_tenants
-- Gives send-rate tokens back. :rows = [[tenant, microseconds], …]
UPDATE tenants
SET next_token_us = next_token_us - (r.value ->> 1)
FROM json_each(:rows) AS r
WHERE tenants.id = r.value ->> 0;

-- name: release
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

-- name: wake_look
-- For each kind: whether a seat is in the ring, and when the next alarm rings.
WITH RECURSIVE kinds (kind) AS (
    SELECT min(kind) FROM seats
    UNION ALL
    SELECT (SELECT min(s.kind) FROM seats AS s WHERE s.kind > k.kind) FROM kinds AS k WHERE k.kind IS NOT NULL
)
SELECT
    k.kind,
    EXISTS (SELECT 1 FROM seats AS s WHERE s.kind = k.kind AND s.wake_at IS NULL),
    (SELECT min(s.wake_at) FROM seats AS s WHERE s.kind = k.kind AND s.wake_at IS NOT NULL)
FROM kinds AS k
WHERE k.kind IS NOT NULL;
