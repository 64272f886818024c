-- name: alert_drop
-- Deletes an alert. :name; :subject
DELETE FROM carteiro.alerts
WHERE name = :name AND subject = :subject;

-- name: alert_find
-- One alert. :name; :subject
SELECT {alert}
FROM carteiro.alerts
WHERE name = :name AND subject = :subject;

-- name: alerts_any
-- True if an alert is open, or there was no notice of its end.
SELECT EXISTS (
    SELECT 1 FROM carteiro.alerts WHERE state <> 'resolved' OR told IN ('firing', 'acknowledged')
);

-- name: alerts_forget
-- Deletes the alerts of a tenant. :tenant
DELETE FROM carteiro.alerts
WHERE tenant = :tenant;

-- name: alerts_list
-- The next alerts, the last change first. :at and :place of the last one; :name and :tenant, null for any; :resolved; :limit
SELECT {alert}
FROM carteiro.alerts
WHERE
    (changed_at, name || ' ' || subject) < (:at, :place) AND (state = 'resolved') = :resolved
    AND name = coalesce(:name, name) AND tenant = coalesce(:tenant, tenant)
ORDER BY changed_at DESC, name || ' ' || subject DESC
LIMIT :limit;

-- name: alerts_prune
-- Deletes alerts that were resolved before a moment, with a notice of their end; null deletes none. :before; :limit
DELETE FROM carteiro.alerts
WHERE
    state = 'resolved' AND coalesce(told, '') NOT IN ('firing', 'acknowledged') AND changed_at <= :before
    AND (name, subject) IN (
        SELECT name, subject FROM carteiro.alerts
        WHERE state = 'resolved' AND coalesce(told, '') NOT IN ('firing', 'acknowledged') AND changed_at <= :before
        ORDER BY changed_at
        LIMIT :limit
    );

-- name: alerts_trim
-- Deletes the oldest resolved alerts beyond a number. :most
DELETE FROM carteiro.alerts
WHERE
    state = 'resolved'
    AND (name, subject) NOT IN (
        SELECT name, subject FROM carteiro.alerts
        WHERE state = 'resolved'
        ORDER BY changed_at DESC, name, subject
        LIMIT :most
    );

-- name: alerts_unsettled
-- The alerts that are open, or without a notice of their end.
SELECT {alert}
FROM carteiro.alerts
WHERE state <> 'resolved' OR told IN ('firing', 'acknowledged');

-- name: dead_letters_new
-- New dead letters by tenant and code, the largest number first, and the sum of all. :since; :until; :but; :limit
SELECT tenant, code, count(*), sum(count(*)) OVER ()
FROM carteiro.dead_letters
WHERE moved_at > :since AND moved_at <= :until AND tenant <> :but
GROUP BY tenant, code
ORDER BY count(*) DESC, tenant, code
LIMIT :limit;

-- name: notice_drop
-- Deletes a notice of a channel. :id; :channel
DELETE FROM carteiro.notices
WHERE id = :id AND channel = :channel;

-- name: notice_put_off
-- Tries a notice again later. :id; :channel; :due_at; :error
UPDATE carteiro.notices
SET due_at = :due_at, tries = tries + 1, error = :error
WHERE id = :id AND channel = :channel;

-- name: notice_rewrite
-- Changes the document of a notice. :id; :document
UPDATE carteiro.notices
SET document = :document
WHERE id = :id;

-- name: notices_any
-- Two booleans: notices are not given to channels yet; there are notices.
SELECT
    EXISTS (SELECT 1 FROM carteiro.notices WHERE channel = ''), EXISTS (SELECT 1 FROM carteiro.notices);

-- name: notices_due
-- The notices that a channel is to be given now, oldest first: also those that a clock that was ahead has put off beyond
-- :latest. :channel; :now; :limit
SELECT document, channel, tries, due_at, error
FROM carteiro.notices
WHERE channel = :channel AND (due_at <= :now OR due_at > :latest)
ORDER BY at, id
LIMIT :limit;

-- name: notices_forget
-- Deletes the notices about a tenant. :tenant
DELETE FROM carteiro.notices
WHERE tenant = :tenant;

-- name: notices_new
-- Deletes the notices that are for all channels, and returns them.
DELETE FROM carteiro.notices
WHERE channel = ''
RETURNING id, channel, tenant, at, due_at, tries, error, document;

-- name: notices_of_all
-- The documents of the notices that are not about a tenant.
SELECT DISTINCT id, document FROM carteiro.notices
WHERE tenant = '';

-- name: notices_prune
-- Deletes the notices of channels that are gone. :before
DELETE FROM carteiro.notices
WHERE at < :before;

-- name: notices_waiting
-- The notices on their way, oldest first. :limit
SELECT document, channel, tries, due_at, error
FROM carteiro.notices
ORDER BY at, id, channel
LIMIT :limit;

-- name: silence_add
-- Adds a silence. :id; :alert; :subject; :tenant; :reason; :by; :created_at; :until
INSERT INTO carteiro.silences ({silence})
VALUES (:id, :alert, :subject, :tenant, :reason, :by, :created_at, :until);

-- name: silence_drop
-- Deletes a silence that has not ended, and returns it. :id; :now
DELETE FROM carteiro.silences
WHERE id = :id AND until > :now
RETURNING {silence};

-- name: silences_forget
-- Deletes the silences of a tenant. :tenant
DELETE FROM carteiro.silences
WHERE tenant = :tenant;

-- name: silences_live
-- The silences that have not ended, the next to end first. :now
SELECT {silence}
FROM carteiro.silences
WHERE until > :now
ORDER BY until, id;

-- name: silences_made
-- The newest silences of an alert, or of all alerts, also ended ones. :alert and :tenant, null for any; :since; :limit
SELECT {silence}
FROM carteiro.silences
WHERE alert IN (coalesce(:alert, alert), '*') AND tenant = coalesce(:tenant, tenant) AND until > :since
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: silences_trim
-- Deletes silences that ended before a moment, and the first ended ones beyond a number. :before; :now; :most
DELETE FROM carteiro.silences
WHERE
    until <= :now
    AND (
        until <= :before
        OR id NOT IN (SELECT id FROM carteiro.silences WHERE until <= :now ORDER BY until DESC, id LIMIT :most)
    );

-- name: alerts_put (sqlite)
-- Stores alerts. :rows = [[name, subject, tenant, state, value, threshold, since, seen_at, changed_at, notice, notice_at, by], …]
INSERT OR REPLACE INTO alerts ({alert})
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11
FROM json_each(:rows);

-- name: alerts_put (postgres)
-- Stores alerts. :rows = [[name, subject, tenant, state, value, threshold, since, seen_at, changed_at, notice, notice_at, by], …]
INSERT INTO carteiro.alerts ({alert})
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::double precision[],
    :rows_5::double precision[], :rows_6::bigint[], :rows_7::bigint[], :rows_8::bigint[], :rows_9::text[],
    :rows_10::bigint[], :rows_11::text[]
)
ON CONFLICT (name, subject) DO UPDATE
SET tenant = excluded.tenant, state = excluded.state, value = excluded.value, threshold = excluded.threshold,
    since = excluded.since, seen_at = excluded.seen_at, changed_at = excluded.changed_at, told = excluded.told,
    told_at = excluded.told_at, acknowledged_by = excluded.acknowledged_by;

-- name: notices_put (sqlite)
-- Stores notices, except known ones. :rows = [[id, channel, tenant, at, due_at, tries, error, document], …]
INSERT INTO notices (id, channel, tenant, at, due_at, tries, error, document)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM json_each(:rows)
WHERE true
ON CONFLICT (id, channel) DO NOTHING;

-- name: notices_put (postgres)
-- Stores notices, except known ones. :rows = [[id, channel, tenant, at, due_at, tries, error, document], …]
INSERT INTO carteiro.notices (id, channel, tenant, at, due_at, tries, error, document)
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::bigint[], :rows_4::bigint[], :rows_5::integer[],
    :rows_6::text[], :rows_7::text[]
)
ON CONFLICT (id, channel) DO NOTHING;

-- name: report_delete
-- Deletes the report of a process, and those whose stay is over. :process; :now; :latest
DELETE FROM carteiro.reports
WHERE process = :process OR until <= :now OR until > :latest;

-- name: report_put
-- Stores the report of a process. :process; :until; :said
INSERT INTO carteiro.reports (process, until, said)
VALUES (:process, :until, :said)
ON CONFLICT (process) DO UPDATE SET until = excluded.until, said = excluded.said;

-- name: reports_list
-- The live reports, by process. :now; :latest; :limit
SELECT process, said FROM carteiro.reports
WHERE until > :now AND until <= :latest
ORDER BY process
LIMIT :limit;
