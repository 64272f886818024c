-- name: claim_alarm_all
-- The clock was set back: alarms are invalid, every seat is looked at again. :kinds = [kind, …]; :now
UPDATE seats
SET wake_at = :now
WHERE kind IN (SELECT value FROM json_each(:kinds)) AND wake_at IS NOT NULL;

-- name: claim_alarms
-- The next alarms of seats that leave the ring: when the first of their jobs may be ready again.
-- :seats = [seat, …]; :now; :longest; :far
SELECT
    s.value,
    min(
        coalesce((SELECT min(d.until) FROM delayed AS d WHERE d.seat = s.value), :far),
        coalesce((
            SELECT min(iif(l.until > :now + :longest, :now, l.until)) FROM leased AS l WHERE l.seat = s.value
        ), :far)
    )
FROM json_each(:seats) AS s;

-- name: claim_clocks
-- The clocks and send limits of the kinds. :kinds = [kind, …]
SELECT kind, v, turn, seen_at, limit_count, limit_per_ms, draws
FROM ring_clock
WHERE kind IN (SELECT value FROM json_each(:kinds));

-- name: claim_entries
-- Counts and provider of messages that have an entry. :numbers = [message no, …]
SELECT
    e.message_no, e.attempts, e.charged, e.in_doubt, e.revision, e.cancel_requested_at IS NOT NULL, e.provider
FROM json_each(:numbers) AS i CROSS JOIN entries AS e ON e.message_no = i.value;

-- name: claim_contents
-- The contents of messages, apart from their rows: those are kept as long as their claim. :numbers = [message no, …]
SELECT c.message_no, c.content
FROM json_each(:numbers) AS i CROSS JOIN contents AS c ON c.message_no = i.value;

-- name: claim_due
-- The first jobs of a seat that can be made ready: delayed ones, and leased ones whose lease has expired or ends later
-- than any can. :seat; :now; :longest; :limit
SELECT message_no
FROM (
    SELECT * FROM (
        SELECT message_no, until, id FROM delayed
        WHERE seat = :seat AND until <= :now
        ORDER BY until, id LIMIT :limit
    )
    UNION ALL
    SELECT l.message_no, l.until, m.id
    FROM leased AS l CROSS JOIN messages AS m ON m.no = l.message_no
    WHERE l.seat = :seat AND (l.until <= :now OR l.until > :now + :longest)
)
ORDER BY until, id
LIMIT :limit;

-- name: claim_due_seats
-- Those of the seats that have such jobs. :seats = [seat, …]; :now; :longest
SELECT s.value
FROM json_each(:seats) AS s
WHERE
    EXISTS (SELECT 1 FROM delayed AS d WHERE d.seat = s.value AND d.until <= :now)
    OR EXISTS (
        SELECT 1 FROM leased AS l WHERE l.seat = s.value AND (l.until <= :now OR l.until > :now + :longest)
    );

-- name: claim_heads
-- The first ready jobs of a seat, in order. :seat; :limit
SELECT priority, due_at, id, claims, message_no
FROM ready
WHERE seat = :seat
ORDER BY priority, due_at, id
LIMIT :limit;

-- name: claim_idle
-- For each kind: is a seat in the ring, and when does the next alarm ring. :kinds = [kind, …]
SELECT
    k.value,
    EXISTS (SELECT 1 FROM seats AS s WHERE s.kind = k.value AND s.wake_at IS NULL),
    (SELECT min(s.wake_at) FROM seats AS s WHERE s.kind = k.value AND s.wake_at IS NOT NULL)
FROM json_each(:kinds) AS k;

-- name: claim_in_flight
-- The number of a tenant's jobs in flight, of any kind, and the earliest end of a lease. :tenant; :now; :longest
SELECT count(*), min(l.until)
FROM seats AS s CROSS JOIN leased AS l ON l.seat = s.no
WHERE s.tenant = :tenant AND l.until > :now AND l.until <= :now + :longest;

-- name: claim_lease
-- Leases a job that was ready; claim and until are shared by many. ? = claim, until, seat, message no, claims
INSERT INTO leased (claim, until, seat, message_no, claims)
VALUES (?1, ?2, ?, ?, ?);

-- name: claim_load
-- The rows of messages (see `places.py`), of those that the ledger has, in the given order. Each column costs time, so
-- those of the entry are left to `claim_entries`. :numbers = [message no, …]
SELECT
    m.no, m.tenant, m.kind = 'email:send', m.created_at, m.due_at, coalesce(e.expires_at, m.due_at + m.ttl_ms),
    m.declares, e.state, m.template_type, m.request_id, m.delivery, m.recipient_id
FROM json_each(:numbers) AS i
CROSS JOIN messages AS m ON m.no = i.value
LEFT JOIN entries AS e ON e.message_no = i.value;

-- name: claim_presets
-- The retry presets of template types, of those in use. :types = [[tenant, type], …]
SELECT
    i.value ->> 0, i.value ->> 1,
    (
        SELECT iif(t.deleted_at IS NULL, t.retry_preset, NULL) FROM templates AS t
        WHERE t.tenant = i.value ->> 0 AND t.type = i.value ->> 1
        ORDER BY t.version DESC
        LIMIT 1
    )
FROM json_each(:types) AS i;

-- name: claim_recipients
-- The recipients with these ids, deleted or not. :ids = [id, …]
SELECT
    r.id, r.tenant, r.email, r.external_id, r.cpf_cnpj_hash, r.razao_social, r.nome, r.created_at, r.deleted_at
FROM json_each(:ids) AS i JOIN recipient_records AS r ON r.id = i.value;

-- name: claim_save_clocks
-- Stores the clocks of the kinds claimed together. :rows = [[kind, draws], …]; :v; :turn; :now
INSERT INTO ring_clock (kind, v, turn, seen_at, draws)
SELECT value ->> 0, :v, :turn, :now, value ->> 1
FROM json_each(:rows)
WHERE true
ON CONFLICT (kind) DO UPDATE
SET v = max(v, excluded.v), turn = excluded.turn, seen_at = excluded.seen_at,
    draws = excluded.draws;

-- name: claim_save_seats
-- Stores a seat after its turns. ? = vt, last_turn, wake_at, processed, jobs of its turn, last_processed_at, seat
UPDATE seats
SET
    vt = ?, last_turn = ?, wake_at = ?, processed = ?, consecutive = coalesce(?, consecutive),
    last_processed_at = coalesce(?, last_processed_at)
WHERE no = ?;

-- name: claim_seats
-- The next seats in the ring of a kind, least virtual time first, after a given one.
-- :kind; :vt, :last_turn, :tenant; :limit
SELECT
    s.no, s.tenant, s.vt, s.last_turn, s.processed,
    t.stride, t.cap, t.rate_per_second, t.next_token_us, t.paused OR t.disabled, t.retry_preset
FROM seats AS s JOIN tenants AS t ON t.id = s.tenant
WHERE s.kind = :kind AND s.wake_at IS NULL AND (s.vt, s.last_turn, s.tenant) > (:vt, :last_turn, :tenant)
ORDER BY s.vt, s.last_turn, s.tenant
LIMIT :limit;

-- name: claim_step_back
-- The clock was set back: recorded, so that the next claim does not detect it again. :rows = [[kind, draws], …]; :now
UPDATE ring_clock
SET seen_at = :now, draws = r.value ->> 1
FROM json_each(:rows) AS r
WHERE ring_clock.kind = r.value ->> 0;

-- name: claim_suppressing
-- Those of the tenants that have suppressions. :tenants = [tenant, …]
SELECT tenant FROM suppression_counts
WHERE tenant IN (SELECT value FROM json_each(:tenants));

-- name: claim_wake
-- Seats whose alarm has rung take their place in the ring, no further back than V; a paused or disabled tenant sleeps on.
-- :kinds = [kind, …]; :turn; :now; :far
UPDATE seats
SET
    vt = CASE
        WHEN t.paused OR t.disabled THEN seats.vt
        ELSE max(seats.vt, coalesce((SELECT c.v FROM ring_clock AS c WHERE c.kind = seats.kind), 0))
    END,
    since_turn = :turn,
    wake_at = CASE WHEN t.paused OR t.disabled THEN :far END
FROM tenants AS t
WHERE seats.kind IN (SELECT value FROM json_each(:kinds)) AND seats.wake_at <= :now AND t.id = seats.tenant;

-- name: claim_taken
-- Deletes the ready jobs of a seat that were taken, from the first to the last.
-- ? = seat, priority, due_at, id, priority, due_at, id
DELETE FROM ready
WHERE seat = ? AND (priority, due_at, id) >= (?, ?, ?) AND (priority, due_at, id) <= (?, ?, ?);

-- name: draw_tokens
-- Stores the send-rate records of tenants. :rows = [[tenant, next_token_us], …]
UPDATE tenants
SET next_token_us = r.value ->> 1
FROM json_each(:rows) AS r
WHERE tenants.id = r.value ->> 0;
