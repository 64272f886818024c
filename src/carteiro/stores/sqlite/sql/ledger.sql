-- name: bury
-- Stores dead letters; a new failure of a redriven one updates its entry.
-- :rows = [[message id, reason, failure, failed attempts], …]; :now; :ttl_ms
INSERT INTO dead_letters (
    message_id, tenant, kind, reason, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms
)
SELECT
    m.id, m.tenant, m.kind, r.value ->> 1, r.value ->> 2, r.value ->> 3, :now, m.created_at, :now, :ttl_ms
FROM json_each(:rows) AS r JOIN messages AS m ON m.id = r.value ->> 0
WHERE true
ON CONFLICT (message_id) DO UPDATE
SET reason = excluded.reason, failure = excluded.failure, failed_attempts = excluded.failed_attempts,
    failed_at = excluded.failed_at, moved_at = excluded.moved_at, ttl_ms = excluded.ttl_ms, redriven_at = NULL;

-- name: declare
-- Stores declared attempts. :rows = [[message no, attempts, in_doubt, holder, held_until, provider], …]
UPDATE messages
SET
    state = 'SENT_ATTEMPT', attempts = r.value ->> 1, in_doubt = r.value ->> 2, holder = r.value ->> 3,
    held_until = r.value ->> 4, provider = r.value ->> 5
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;

-- name: drop_parked
-- Deletes parked jobs that are finished or ready. :ids = [id, …]
DELETE FROM parked
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: drop_ready
-- Deletes waiting jobs of finished messages. :ids = [id, …]
DELETE FROM ready
WHERE (tenant, kind, priority, due_at, id) IN (
    SELECT m.tenant, m.kind, m.priority, m.due_at, m.id
    FROM json_each(:ids) AS i CROSS JOIN messages AS m ON m.id = i.value
);

-- name: expire_find
-- Messages past their time to live, oldest first. :now; :expires_at, :edge: an id; :limit
SELECT id, expires_at, id
FROM messages
WHERE finished_at IS NULL AND expires_at <= :now AND (expires_at, id) > (:expires_at, :edge)
ORDER BY expires_at, id
LIMIT :limit;

-- name: free_slots
-- A slot of these tenants became free: wake those with a cap. :tenants = [id, …]; :now
UPDATE seats
SET wake_at = min(wake_at, :now)
WHERE wake_at IS NOT NULL AND tenant IN (
    SELECT t.id FROM json_each(:tenants) AS i JOIN tenants AS t ON t.id = i.value WHERE t.cap IS NOT NULL
);

-- name: hold_parked
-- The hold of a declared attempt replaces the lease. :rows = [[id, held_until], …]
UPDATE parked
SET parked_until = r.value ->> 1
FROM json_each(:rows) AS r
WHERE parked.id = r.value ->> 0;

-- name: load_entries
-- The ledger entries of the ids, each with its job if it has one: for a job that is ready, the message
-- itself says where it is. :ids = [id, …]
SELECT
    i.value, m.no, p.claim_id, p.parked_until, coalesce(p.kind, m.kind), coalesce(p.tenant, m.tenant),
    p.id IS NOT NULL, m.no IS NOT NULL AND m.finished_at IS NULL,
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged,
    m.in_doubt, m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider,
    m.provider_message_id, m.failure, m.duration_ms, m.finished_at
FROM json_each(:ids) AS i
LEFT JOIN parked AS p ON p.id = i.value
LEFT JOIN messages AS m
    ON m.no = coalesce(p.message_no, (SELECT n.no FROM messages AS n WHERE n.id = i.value));

-- name: park_settled
-- Parks jobs without a claim, until they are due. :rows = [[id, due_at], …]
UPDATE parked
SET parked_until = r.value ->> 1, due_at = r.value ->> 1, is_claimed = 0, claim_id = NULL, claims = 0
FROM json_each(:rows) AS r
WHERE parked.id = r.value ->> 0;

-- name: ready_parked
-- Makes parked jobs claimable now, leased or not; `drop_parked` removes the parked rows. :ids = [id, …]
INSERT INTO ready (tenant, kind, priority, due_at, id, message_no, claims)
SELECT tenant, kind, priority, due_at, id, message_no, claims
FROM parked
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: save_entries
-- Stores changed entries. :rows = [[message no, state, due_at, expires_at, attempts, charged, in_doubt, round,
-- revision, holder, held_until, cancel_requested_at, evidence, provider, provider id, failure, duration_ms,
-- finished_at], …]
UPDATE messages
SET
    state = r.value ->> 1, due_at = r.value ->> 2, expires_at = r.value ->> 3, attempts = r.value ->> 4,
    charged = r.value ->> 5, in_doubt = r.value ->> 6, round = r.value ->> 7, revision = r.value ->> 8,
    holder = r.value ->> 9, held_until = r.value ->> 10, cancel_requested_at = r.value ->> 11,
    evidence = r.value ->> 12, provider = r.value ->> 13, provider_message_id = r.value ->> 14,
    failure = r.value ->> 15, duration_ms = r.value ->> 16, finished_at = r.value ->> 17
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;

-- name: settle_retried
-- Stores retries, the second most usual end; as in `settle_sent`, fewer columns take less time.
-- :rows = [[message no, attempts, charged, in_doubt, holder, due_at, failure, duration_ms], …]
UPDATE messages
SET
    state = 'RETRY_SCHEDULED', attempts = r.value ->> 1, charged = r.value ->> 2, in_doubt = r.value ->> 3,
    holder = r.value ->> 4, held_until = NULL, due_at = r.value ->> 5, failure = r.value ->> 6,
    duration_ms = r.value ->> 7
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;

-- name: settle_sent
-- Stores sent messages, the usual end: fewer columns than `save_entries` take half the time.
-- :rows = [[message no, attempts, in_doubt, holder, provider, provider id, duration_ms, finished_at], …]
UPDATE messages
SET
    state = 'SENT', attempts = r.value ->> 1, in_doubt = r.value ->> 2, holder = r.value ->> 3,
    held_until = NULL, provider = r.value ->> 4, provider_message_id = r.value ->> 5, failure = NULL,
    duration_ms = r.value ->> 6, finished_at = r.value ->> 7
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;

-- name: touch_seats
-- Sets alarms of seats outside the ring (never later than they were) and counts their jobs; only claim
-- changes the ring. :rows = [[kind, tenant, wake_at, jobs more or less], …]
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM json_each(:rows)
WHERE true
ON CONFLICT (kind, tenant) DO UPDATE
SET wake_at = min(wake_at, excluded.wake_at), jobs = jobs + excluded.jobs;

-- name: unbury
-- Removes sent or cancelled messages from the dead letters. :ids = [id, …]
DELETE FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: write_events
-- Adds events to timelines, in order. :rows = [[message id, type, metadata, created_at], …]
INSERT INTO events (message_id, type, metadata, created_at)
SELECT value ->> 0, value ->> 1, value -> 2, value ->> 3
FROM json_each(:rows);

-- name: track_known
-- The recipient and providers of a message, and the ids of feedback on its timeline. :id
SELECT
    m.to_address,
    json_group_array(DISTINCT e.metadata ->> 'provider') FILTER (WHERE e.type = 'SENT_ATTEMPT'),
    json_group_array(e.metadata ->> 'eventId') FILTER (WHERE e.type <> 'SENT_ATTEMPT')
FROM messages AS m
LEFT JOIN events AS e
    ON
        e.message_id = m.id
        AND e.type IN ('SENT_ATTEMPT', 'DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED')
WHERE m.id = :id
GROUP BY m.no;
