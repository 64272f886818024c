-- name: extend
-- Extends leases, never shortens one. ? = until, seat, message no
UPDATE leased
SET until = max(until, ?)
WHERE seat = ? AND message_no = ?;

-- name: extend_holds
-- Extends the holds of declared attempts like their claims, never shortens one. :leases = [[id, claim], …]; :until
UPDATE entries
SET held_until = max(held_until, :until)
FROM json_each(:leases) AS l
WHERE
    entries.message_no = (SELECT m.no FROM messages AS m WHERE m.id = l.value ->> 0)
    AND entries.holder = l.value ->> 1 AND entries.state = 'SENT_ATTEMPT' AND entries.held_until IS NOT NULL;

-- name: find_leases
-- The valid ones of these leases: position in the list, message no, whether its attempt was declared, id, seat, kind,
-- tenant, claims, priority, due time. :leases = [[id, claim], …]
SELECT
    i.key, m.no, coalesce(e.state = 'SENT_ATTEMPT' AND e.holder = l.claim, 0), m.id, l.seat, m.kind, m.tenant,
    l.claims, m.priority, coalesce(e.due_at, m.due_at)
FROM json_each(:leases) AS i
CROSS JOIN messages AS m ON m.id = i.value ->> 0
CROSS JOIN seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
CROSS JOIN leased AS l ON l.seat = s.no AND l.message_no = m.no AND l.claim = i.value ->> 1
LEFT JOIN entries AS e ON e.message_no = m.no;

-- name: leases_of_claims
-- The leases of claims. :claims = [claim, …]
SELECT m.id, l.claim
FROM leased AS l CROSS JOIN messages AS m ON m.no = l.message_no
WHERE l.claim IN (SELECT value FROM json_each(:claims));

-- name: reap_find
-- Claimed jobs with an expired lease or hold, longest expired first. :now; :longest; :limit
SELECT l.seat, l.message_no
FROM leased AS l CROSS JOIN messages AS m ON m.no = l.message_no
WHERE l.until <= :now OR l.until > :now + :longest
ORDER BY l.until, m.id
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
