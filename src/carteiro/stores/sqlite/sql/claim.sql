-- name: claim_alarm_all
-- The clock was set back: alarms are invalid, every seat is looked at again. :kinds = [kind, …]; :now
UPDATE seats
SET wake_at = :now
WHERE kind IN (SELECT value FROM json_each(:kinds)) AND wake_at IS NOT NULL;

-- name: claim_alarms
-- The next alarms of seats that leave the ring: the end of their first park. :seats = [[kind, tenant], …];
-- :now; :longest; :far
SELECT
    s.key,
    min(
        coalesce((
            SELECT min(p.parked_until) FROM parked AS p
            WHERE p.tenant = s.value ->> 1 AND p.is_claimed = 0 AND p.kind = s.value ->> 0
        ), :far),
        coalesce((
            SELECT min(p.parked_until) FROM parked AS p
            WHERE p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
        ), :far),
        iif(EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
                AND p.parked_until > :now + :longest
        ), :now, :far)
    )
FROM json_each(:seats) AS s;

-- name: claim_clocks
-- The clocks and send limits of the kinds. :kinds = [kind, …]
SELECT kind, v, turn, seen_at, limit_count, limit_per_ms, draws
FROM ring_clock
WHERE kind IN (SELECT value FROM json_each(:kinds));

-- name: claim_due
-- The first due parked jobs of a seat, the usual case: none of its leases has expired.
-- :kind; :tenant; :now; :limit
SELECT id
FROM parked
WHERE tenant = :tenant AND is_claimed = 0 AND kind = :kind AND parked_until <= :now
ORDER BY parked_until, id
LIMIT :limit;

-- name: claim_due_or_lost
-- As `claim_due`, with jobs whose lease has expired or ends later than any can.
-- :kind; :tenant; :now; :longest; :limit
SELECT id
FROM (
    SELECT * FROM (
        SELECT id, parked_until FROM parked
        WHERE tenant = :tenant AND is_claimed = 0 AND kind = :kind AND parked_until <= :now
        ORDER BY parked_until, id LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT id, parked_until FROM parked
        WHERE tenant = :tenant AND is_claimed = 1 AND kind = :kind AND parked_until <= :now
        ORDER BY parked_until, id LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT id, parked_until FROM parked
        WHERE tenant = :tenant AND is_claimed = 1 AND kind = :kind AND parked_until > :now + :longest
        ORDER BY parked_until, id LIMIT :limit
    )
)
ORDER BY parked_until, id
LIMIT :limit;

-- name: claim_due_seats
-- Those of the seats with due parked jobs: delayed ones, and claimed ones whose lease has expired or ends later than any
-- can. :seats = [[kind, tenant], …]; :now; :longest
SELECT key, is_delayed, is_lost
FROM (
    SELECT
        s.key,
        EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 0 AND p.kind = s.value ->> 0
                AND p.parked_until <= :now
        ) AS is_delayed,
        EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
                AND p.parked_until <= :now
        )
        OR EXISTS (
            SELECT 1 FROM parked AS p
            WHERE
                p.tenant = s.value ->> 1 AND p.is_claimed = 1 AND p.kind = s.value ->> 0
                AND p.parked_until > :now + :longest
        ) AS is_lost
    FROM json_each(:seats) AS s
)
WHERE is_delayed OR is_lost;

-- name: claim_heads
-- The first ready jobs of one seat, in order. :kind; :tenant; :limit
SELECT priority, due_at, id, claims, message_no
FROM ready
WHERE tenant = :tenant AND kind = :kind
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
SELECT count(*), min(parked_until)
FROM parked
WHERE tenant = :tenant AND is_claimed = 1 AND parked_until > :now AND parked_until <= :now + :longest;

-- name: claim_lease
-- Leases jobs; `claim_take` removes them from the ready ones.
-- :rows = [[tenant, kind, priority, due_at, id, message no, claims], …]; :claim; :until
INSERT INTO parked (
    tenant, kind, priority, due_at, id, message_no, claims, parked_until, is_claimed, claim_id
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, :until, 1, :claim
FROM json_each(:rows);

-- name: claim_load
-- Data of the messages in the ledger, in the given order. :numbers = [message no, …]
SELECT
    m.tenant, m.request_id, m.delivery, m.attempts, m.charged, m.in_doubt, m.revision, m.state, m.expires_at,
    m.cancel_requested_at, m.recipient_id, m.template_type, m.provider, c.content,
    EXISTS (SELECT 1 FROM suppressions AS s WHERE s.tenant = m.tenant)
FROM json_each(:numbers) AS i
LEFT JOIN messages AS m ON m.no = i.value
LEFT JOIN contents AS c ON c.message_no = i.value;

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
-- Stores seats after their turns. :rows = [[kind, tenant, vt, last_turn, wake_at, processed, jobs of its turn, served], …]; :now
UPDATE seats
SET
    vt = r.value ->> 2, last_turn = r.value ->> 3, wake_at = r.value ->> 4, processed = r.value ->> 5,
    consecutive = coalesce(r.value ->> 6, consecutive), last_processed_at = iif(r.value ->> 7, :now, last_processed_at)
FROM json_each(:rows) AS r
WHERE seats.kind = r.value ->> 0 AND seats.tenant = r.value ->> 1;

-- name: claim_seats
-- The next seats in the ring of a kind, least virtual time first, after a given one.
-- :kind; :vt, :last_turn, :tenant; :limit
SELECT
    s.kind, s.tenant, s.vt, s.last_turn, s.processed,
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

-- name: claim_take
-- Removes leased jobs from the ready ones. Their keys are read from where `claim_lease` put them: values of a JSON list are not
-- known to be text or numbers, and SQLite would search by only the first part of the key. :ids = [id, …]
DELETE FROM ready
WHERE (tenant, kind, priority, due_at, id) IN (
    SELECT tenant, kind, priority, due_at, id FROM parked WHERE id IN (SELECT value FROM json_each(:ids))
);

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

-- name: draw_tokens
-- Stores the send-rate records of tenants. :rows = [[tenant, next_token_us], …]
UPDATE tenants
SET next_token_us = r.value ->> 1
FROM json_each(:rows) AS r
WHERE tenants.id = r.value ->> 0;

-- name: claim_leases
-- The leases of claims, found tenant by tenant as `reap_find` does. :claims = [claim, …]
SELECT p.id, p.claim_id
FROM tenants AS t CROSS JOIN parked AS p ON p.tenant = t.id AND p.is_claimed = 1
WHERE p.claim_id IN (SELECT value FROM json_each(:claims));
