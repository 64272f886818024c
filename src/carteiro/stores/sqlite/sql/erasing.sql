-- name: erase_alone
-- A row if there is such a tenant; no other transaction adds to it. :tenant
SELECT 1 FROM tenants
WHERE id = :tenant;

-- name: erase_beside
-- Deletes the dead letters and the idempotency keys of messages. :ids = [message id, …]
DELETE FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));

DELETE FROM idempotency_keys
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: erase_ended
-- Finished messages to a recipient: those that name it, and those to its address that name nobody.
-- :recipient; :tenant; :email; :limit
SELECT m.no, m.id FROM ledger AS m
WHERE m.recipient_id = :recipient AND m.tenant = :tenant AND m.finished_at IS NOT NULL
UNION ALL
SELECT m.no, m.id FROM ledger AS m
WHERE m.to_address = :email AND m.tenant = :tenant AND m.recipient_id IS NULL AND m.finished_at IS NOT NULL
LIMIT :limit;

-- name: erase_entries
-- The numbers of messages, their due times and whether they have a job. :numbers = [number, …]
SELECT no, due_at, finished_at IS NULL
FROM ledger
WHERE no IN (SELECT value FROM json_each(:numbers));

-- name: erase_find
-- The next messages of a tenant that are not in flight. :tenant; :now; :longest; :limit
SELECT m.no, m.id, m.kind, m.priority
FROM (
    SELECT no, id, kind, priority FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT no, id, kind, priority FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
) AS m
LEFT JOIN seats AS s ON s.kind = m.kind AND s.tenant = :tenant
LEFT JOIN leased AS l ON l.seat = s.no AND l.message_no = m.no
WHERE NOT coalesce(l.until > :now AND l.until <= :now + :longest, 0)
LIMIT :limit;

-- name: erase_find_messages
-- As `erase_find`, for a separate queue: without messages in an attempt, and without those that are busy there.
-- :tenant; :now; :longest; :busy = [id, …]; :limit
SELECT m.no, m.id, m.kind, m.priority
FROM (
    SELECT no, id, kind, priority FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT no, id, kind, priority FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
) AS m LEFT JOIN entries AS e ON e.message_no = m.no
WHERE
    NOT coalesce(e.state = 'SENT_ATTEMPT' AND e.held_until > :now AND e.held_until <= :now + :longest, 0)
    AND m.id NOT IN (SELECT value FROM json_each(:busy))
LIMIT :limit;

-- name: erase_jobs
-- Deletes jobs of a tenant from every table, and reduces its count; their messages are finished, so that no job is
-- missing. :tenant; :now; :rows = [[number, id, kind, priority, due_at, 1 if it has a job], …]
UPDATE seats
SET jobs = seats.jobs - j.jobs
FROM (SELECT r.value ->> 2 AS kind, sum(r.value ->> 5) AS jobs FROM json_each(:rows) AS r GROUP BY r.value ->> 2) AS j
WHERE seats.tenant = :tenant AND seats.kind = j.kind;

DELETE FROM ready
WHERE (seat, priority, due_at, id) IN (
    SELECT s.no, m.priority, m.due_at, m.id
    FROM json_each(:rows) AS r CROSS JOIN ledger AS m CROSS JOIN seats AS s
    WHERE m.no = r.value ->> 0 AND s.kind = m.kind AND s.tenant = m.tenant
);

DELETE FROM delayed
WHERE message_no IN (SELECT value ->> 0 FROM json_each(:rows));

DELETE FROM leased
WHERE (seat, message_no) IN (
    SELECT s.no, r.value ->> 0
    FROM json_each(:rows) AS r CROSS JOIN seats AS s ON s.kind = r.value ->> 2 AND s.tenant = :tenant
);

DELETE FROM unfinished
WHERE (expires_at, message_no) IN (
    SELECT m.expires_at, m.no
    FROM json_each(:rows) AS r CROSS JOIN ledger AS m
    WHERE m.no = r.value ->> 0
);

INSERT INTO entries (
    message_no, tenant, is_email, created_at, state, due_at, expires_at, finished_at, timeline
)
SELECT m.no, m.tenant, m.kind = 'email:send', m.created_at, 'CANCELLED', m.due_at, m.due_at + m.ttl_ms, :now, ''
FROM json_each(:rows) AS r CROSS JOIN messages AS m ON m.no = r.value ->> 0
WHERE true
ON CONFLICT (message_no) DO UPDATE SET state = excluded.state, finished_at = excluded.finished_at
WHERE entries.finished_at IS NULL;

-- name: erase_left
-- True if any message to a recipient is left. :recipient; :tenant; :email
SELECT
    EXISTS (SELECT 1 FROM messages WHERE recipient_id = :recipient AND tenant = :tenant)
    OR EXISTS (SELECT 1 FROM messages WHERE to_address = :email AND tenant = :tenant AND recipient_id IS NULL);

-- name: erase_messages
-- Blanks messages: only their ids, states and times stay. :numbers = [number, …]
DELETE FROM message_tags
WHERE (tenant, tag, created_at, message_no) IN (
    SELECT m.tenant, t.value, m.created_at, m.no
    FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value CROSS JOIN json_each(m.tags) AS t
);

UPDATE messages
SET
    request_id = '', external_id = NULL, recipient_id = NULL, to_address = NULL, subject = NULL, tags = NULL
WHERE no IN (SELECT value FROM json_each(:numbers));

UPDATE entries
SET
    evidence = NULL, provider_message_id = iif(provider_message_id IS NULL, NULL, ''),
    failure = json_set(failure, '$.reason', '', '$.original_code', NULL)
WHERE message_no IN (SELECT value FROM json_each(:numbers));

-- name: erase_people
-- Deletes idempotency keys, mails and suppressions of a tenant, and its recipients.
-- :tenant; :most = maximum of recipients; :limit = maximum of each of the others
DELETE FROM idempotency_keys
WHERE tenant = :tenant AND key IN (SELECT k.key FROM idempotency_keys AS k WHERE k.tenant = :tenant LIMIT :limit);

DELETE FROM inbox
WHERE id IN (SELECT i.id FROM inbox AS i WHERE i.tenant = :tenant LIMIT :limit);

DELETE FROM suppressions
WHERE (tenant, key, reason) IN (
    SELECT s.tenant, s.key, s.reason FROM suppressions AS s WHERE s.tenant = :tenant LIMIT :limit
);

DELETE FROM recipient_records
WHERE id IN (SELECT r.id FROM recipient_records AS r WHERE r.tenant = :tenant LIMIT :most);

-- name: erase_rest
-- Two booleans: messages of a tenant are left; recipients, idempotency keys, mails or suppressions are left. :tenant
SELECT
    EXISTS (SELECT 1 FROM messages WHERE tenant = :tenant AND kind = 'email:send')
    OR EXISTS (SELECT 1 FROM messages WHERE tenant = :tenant AND kind <> 'email:send'),
    EXISTS (SELECT 1 FROM recipient_records WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM idempotency_keys WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM inbox WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM suppressions WHERE tenant = :tenant);

-- name: erase_tenant
-- Deletes a tenant and its last rows. :tenant
DELETE FROM dead_letters WHERE tenant = :tenant;
DELETE FROM redrive_items WHERE redrive IN (SELECT id FROM redrives WHERE tenant = :tenant);
DELETE FROM redrives WHERE tenant = :tenant;
DELETE FROM message_tags WHERE tenant = :tenant;
DELETE FROM templates WHERE tenant = :tenant;
DELETE FROM sender_domains WHERE tenant = :tenant;
DELETE FROM access_keys WHERE tenant = :tenant;
DELETE FROM api_counts WHERE tenant = :tenant;
DELETE FROM failure_counts WHERE tenant = :tenant;
DELETE FROM rollups WHERE span IN ('minute', 'hour') AND tenant = :tenant;
DELETE FROM ready WHERE seat IN (SELECT no FROM seats WHERE tenant = :tenant);
DELETE FROM delayed WHERE seat IN (SELECT no FROM seats WHERE tenant = :tenant);
DELETE FROM leased WHERE seat IN (SELECT no FROM seats WHERE tenant = :tenant);
DELETE FROM seats WHERE tenant = :tenant;
DELETE FROM tenants WHERE id = :tenant;

-- name: erase_waiting
-- Unfinished messages to a recipient (those that name it, and those to its address that name nobody) without a
-- requested cancel. :recipient; :tenant; :email; :limit
SELECT m.id FROM ledger AS m
WHERE m.recipient_id = :recipient AND m.tenant = :tenant AND m.finished_at IS NULL AND m.cancel_requested_at IS NULL
UNION ALL
SELECT m.id FROM ledger AS m
WHERE
    m.to_address = :email AND m.tenant = :tenant AND m.recipient_id IS NULL
    AND m.finished_at IS NULL AND m.cancel_requested_at IS NULL
LIMIT :limit;

-- name: erase_words
-- Deletes personal data of messages: contents, the sandbox's mails, and of events all but their types and times.
-- :numbers = [number, …]; :ids = [message id, …]
DELETE FROM inbox
WHERE message_id IN (SELECT value FROM json_each(:ids));

DELETE FROM contents
WHERE message_no IN (SELECT value FROM json_each(:numbers));

UPDATE entries
SET timeline = coalesce((
    SELECT group_concat(json_array(t.value ->> 0, t.value ->> 1, json('{}')) || ',', '')
    FROM json_each('[' || entries.timeline || '0]') AS t
    WHERE t.type = 'array'
), '')
WHERE message_no IN (SELECT value FROM json_each(:numbers));

UPDATE events
SET metadata = '{}'
WHERE message_no IN (SELECT value FROM json_each(:numbers));

-- name: forget_messages
-- Deletes messages and their rows, except dead letters and idempotency keys.
-- :numbers = [number, …]; :ids = [message id, …]
DELETE FROM message_tags
WHERE (tenant, tag, created_at, message_no) IN (
    SELECT m.tenant, t.value, m.created_at, m.no
    FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value CROSS JOIN json_each(m.tags) AS t
);

DELETE FROM inbox
WHERE message_id IN (SELECT value FROM json_each(:ids));

DELETE FROM contents
WHERE message_no IN (SELECT value FROM json_each(:numbers));

DELETE FROM unfinished -- redriven since its job was taken
WHERE (expires_at, message_no) IN (
    SELECT e.expires_at, e.message_no FROM json_each(:numbers) AS i CROSS JOIN entries AS e ON e.message_no = i.value
);

DELETE FROM events
WHERE message_no IN (SELECT value FROM json_each(:numbers));

DELETE FROM entries
WHERE message_no IN (SELECT value FROM json_each(:numbers));

DELETE FROM messages
WHERE no IN (SELECT value FROM json_each(:numbers));
