-- name: bury
-- Stores dead letters; a new failure of a redriven one replaces its entry, which keeps the number of automatic rounds.
-- :rows = [[message id, reason, failure, failed attempts, group, the provider that it waits for, and since when], …]; :now; :ttl_ms
INSERT OR REPLACE INTO dead_letters (
    message_id, tenant, kind, reason, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms,
    failure_group, waits_for, waits_since, automatic_rounds
)
SELECT
    m.id, m.tenant, m.kind, r.value ->> 1, r.value ->> 2, r.value ->> 3, :now, m.created_at, :now, :ttl_ms,
    r.value ->> 4, r.value ->> 5, r.value ->> 6, coalesce(d.automatic_rounds, 0)
FROM json_each(:rows) AS r
JOIN messages AS m ON m.id = r.value ->> 0
LEFT JOIN dead_letters AS d ON d.message_id = m.id;

-- name: declare_first
-- Stores the first attempt of a message to which nothing had happened before.
-- ? = message no, tenant, is_email, created_at, due_at, expires_at, holder, held_until, provider, timeline
INSERT OR IGNORE INTO entries (
    message_no, tenant, is_email, created_at, due_at, expires_at, state, attempts, holder, held_until, provider,
    timeline
)
VALUES (?, ?, ?, ?, ?, ?, 'SENT_ATTEMPT', 1, ?, ?, ?, ?);

-- name: drop_delayed
-- Deletes a job that is not delayed any more. ? = message no
DELETE FROM delayed
WHERE message_no = ?;

-- name: drop_leased
-- Ends a lease. ? = seat, message no, claim
DELETE FROM leased
WHERE seat = ? AND message_no = ? AND claim = ?;

-- name: drop_leased_stretch
-- Ends neighbouring leases of a claim, from the first message to the last. ? = seat, claim, message no, message no
DELETE FROM leased
WHERE seat = ? AND claim = ? AND message_no BETWEEN ? AND ?;

-- name: drop_ready
-- Deletes a job that is not ready any more. ? = seat, priority, due_at, id
DELETE FROM ready
WHERE seat = ? AND priority = ? AND due_at = ? AND id = ?;

-- name: drop_unfinished_range
-- Records the end of messages that expire at the same time, from the first to the last. ? = expires_at, message no,
-- message no
DELETE FROM unfinished
WHERE expires_at = ? AND message_no BETWEEN ? AND ?;

-- name: drop_unfinished
-- Records the end of a message. ? = expires_at, message no
DELETE FROM unfinished
WHERE expires_at = ? AND message_no = ?;

-- name: expire_find
-- Messages past their time to live, oldest first. :now; :expires_at, :edge: a message no, as text; :limit
SELECT m.id, u.expires_at, CAST(u.message_no AS TEXT)
FROM unfinished AS u CROSS JOIN messages AS m ON m.no = u.message_no
WHERE u.expires_at <= :now AND (u.expires_at, u.message_no) > (:expires_at, CAST(:edge AS INTEGER))
ORDER BY u.expires_at, u.message_no
LIMIT :limit;

-- name: find_leased
-- The row of each message (see `places.py`): seat and claim that have its job, whether its timeline has room and it was
-- never redriven, who holds its attempt, and until when. :ids = [id, …]; :most = length of a timeline
SELECT
    m.no, m.tenant, m.kind = 'email:send', m.created_at, m.due_at, coalesce(e.expires_at, m.due_at + m.ttl_ms),
    m.declares, e.state, m.template_type,
    l.seat, l.claim, e.round = 1 AND length(e.timeline) < :most, e.holder, e.held_until
FROM json_each(:ids) AS i
LEFT JOIN messages AS m ON m.id = i.value
LEFT JOIN seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
LEFT JOIN leased AS l ON l.seat = s.no AND l.message_no = m.no
LEFT JOIN entries AS e ON e.message_no = m.no;

-- name: free_slots
-- A slot at these seats became free: wake those of their tenants that have a cap. :seats = [seat, …]; :now
UPDATE seats
SET wake_at = min(wake_at, :now)
WHERE wake_at IS NOT NULL AND tenant IN (
    SELECT t.id
    FROM json_each(:seats) AS i CROSS JOIN seats AS s ON s.no = i.value CROSS JOIN tenants AS t ON t.id = s.tenant
    WHERE t.cap IS NOT NULL
);

-- name: hold_leased
-- The hold of a declared attempt replaces the lease. ? = until, seat, message no, claim
UPDATE leased
SET until = ?
WHERE seat = ? AND message_no = ? AND claim = ?;

-- name: hold_leased_stretch
-- The holds of declared attempts replace neighbouring leases, from the first message to the last.
-- ? = seat, claim, message no, message no, until
UPDATE leased
SET until = ?5
WHERE seat = ?1 AND claim = ?2 AND message_no BETWEEN ?3 AND ?4;

-- name: load_entries
-- The ledger entries of the known ones of the ids, each with its job if it has one here. :ids = [id, …]
SELECT
    m.no, l.claim, coalesce(l.until, d.until), s.no, m.priority,
    CASE WHEN l.claim IS NOT NULL THEN 'leased' WHEN d.until IS NOT NULL THEN 'delayed' ELSE 'ready' END,
    (SELECT 1 + max(v.position) FROM events AS v WHERE v.message_no = m.no),
    coalesce((SELECT length(e.timeline) FROM entries AS e WHERE e.message_no = m.no), 0),
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged,
    m.in_doubt, m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider,
    m.provider_message_id, m.failure, m.duration_ms, m.finished_at, m.retry_of
FROM json_each(:ids) AS i
CROSS JOIN ledger AS m
LEFT JOIN seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
LEFT JOIN leased AS l ON l.seat = s.no AND l.message_no = m.no
LEFT JOIN delayed AS d ON d.message_no = m.no
WHERE m.id = i.value;

-- name: ready_jobs
-- Makes delayed and leased jobs claimable now. :rows = [[seat, message no], …]
INSERT INTO ready (seat, priority, due_at, id, message_no, claims)
SELECT i.value ->> 0, m.priority, m.due_at, m.id, m.no, coalesce(l.claims, d.claims)
FROM json_each(:rows) AS i
CROSS JOIN ledger AS m
LEFT JOIN leased AS l ON l.seat = i.value ->> 0 AND l.message_no = m.no
LEFT JOIN delayed AS d ON d.message_no = m.no
WHERE m.no = i.value ->> 1;
DELETE FROM leased WHERE (seat, message_no) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:rows));
DELETE FROM delayed WHERE message_no IN (SELECT value ->> 1 FROM json_each(:rows));

-- name: save_entries
-- Stores what has happened to a message. ? = message no, timeline, state, due_at, expires_at, attempts, charged, in_doubt,
-- round, revision, holder, held_until, cancel_requested_at, evidence, provider, provider_id, failure, duration_ms,
-- finished_at, retry_of
INSERT INTO entries (
    message_no, tenant, is_email, created_at, timeline, state, due_at, expires_at, attempts, charged, in_doubt, round,
    revision, holder, held_until, cancel_requested_at, evidence, provider, provider_message_id, failure, duration_ms,
    finished_at, retry_of
)
SELECT
    no, tenant, kind = 'email:send', created_at,
    ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20
FROM messages
WHERE no = ?1
ON CONFLICT (message_no) DO UPDATE
SET
    timeline = timeline || excluded.timeline, state = excluded.state, due_at = excluded.due_at,
    expires_at = excluded.expires_at, attempts = excluded.attempts, charged = excluded.charged,
    in_doubt = excluded.in_doubt, round = excluded.round, revision = excluded.revision, holder = excluded.holder,
    held_until = excluded.held_until, cancel_requested_at = excluded.cancel_requested_at,
    evidence = excluded.evidence, provider = excluded.provider, provider_message_id = excluded.provider_message_id,
    failure = excluded.failure, duration_ms = excluded.duration_ms, finished_at = excluded.finished_at,
    retry_of = excluded.retry_of;

-- name: settle_first
-- Stores a sent message to which nothing had happened before. ? = message no, tenant, is_email, created_at, due_at,
-- expires_at, attempts, holder, provider, provider_id, duration_ms, now, timeline
INSERT OR IGNORE INTO entries (
    message_no, tenant, is_email, created_at, due_at, expires_at, state, attempts, holder, provider,
    provider_message_id, duration_ms, finished_at, timeline
)
VALUES (?, ?, ?, ?, ?, ?, 'SENT', ?, ?, ?, ?, ?, ?, ?);

-- name: settle_sent
-- Stores a sent message; its attempt must be open if it ``declares``. ? = message no, attempts more, holder, provider,
-- provider_id, duration_ms, now, declares, length of a timeline
UPDATE entries
SET
    state = 'SENT', attempts = attempts + ?2, holder = ?3, held_until = NULL, provider = ?4, provider_message_id = ?5,
    failure = NULL, duration_ms = ?6, finished_at = ?7,
    timeline = timeline || json_array(
        'SENT', ?7, json_object('sesMessageId', ?5, 'provider', ?4, 'durationMs', ?6, 'attempt', attempts + ?2)
    ) || ','
WHERE message_no = ?1 AND (state = 'SENT_ATTEMPT' OR NOT ?8) AND round = 1 AND length(timeline) < ?9;

-- name: touch_seats
-- Sets the alarm of a seat outside the ring (never later than it was) and counts its jobs; only claim changes the ring.
-- ? = wake_at, jobs more or less, seat
UPDATE seats
SET wake_at = min(wake_at, ?), jobs = jobs + ?
WHERE no = ?;

-- name: unbury
-- Removes sent or cancelled messages from the dead letters. :ids = [id, …]
DELETE FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: write_events
-- Adds an event that the timeline has no room for. ? = message no, position, type, metadata, created_at
INSERT INTO events (message_no, position, type, metadata, created_at)
VALUES (?, ?, ?, ?, ?);

-- name: track_known
-- The recipient and providers of a message, and the ids of feedback on its timeline. :id
SELECT
    m.to_address,
    json_group_array(DISTINCT t.metadata ->> 'provider') FILTER (WHERE t.type = 'SENT_ATTEMPT'),
    json_group_array(t.metadata ->> 'eventId') FILTER (WHERE t.type <> 'SENT_ATTEMPT')
FROM messages AS m
LEFT JOIN (
    SELECT type, metadata FROM timelines
    WHERE
        message_id = :id
        AND type IN ('SENT_ATTEMPT', 'DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED',
            'UNSUBSCRIBED')
) AS t
WHERE m.id = :id
GROUP BY m.no;
