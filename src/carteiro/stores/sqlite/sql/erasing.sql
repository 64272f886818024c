-- name: erase_counts
-- Drops what was counted of a tenant. :tenant
DELETE FROM api_counts
WHERE tenant = :tenant;

-- name: erase_dead_letters
-- Drops dead letters of a tenant whose messages are gone. :tenant
DELETE FROM dead_letters
WHERE tenant = :tenant;

-- name: erase_domains
-- Drops the claims of a tenant. :tenant
DELETE FROM sender_domains
WHERE tenant = :tenant;

-- name: erase_ended
-- Finished messages to a recipient: those that name it, and those to its address that name nobody.
-- :recipient; :tenant; :email; :limit
SELECT id FROM messages
WHERE recipient_id = :recipient AND tenant = :tenant AND finished_at IS NOT NULL
UNION ALL
SELECT id FROM messages
WHERE to_address = :email AND tenant = :tenant AND recipient_id IS NULL AND finished_at IS NOT NULL
LIMIT :limit;

-- name: erase_events
-- Leaves of events their types and times. :ids = [message id, …]
UPDATE events
SET metadata = '{}'
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: erase_find
-- The next messages of a tenant that are not in flight, each with its kind and whether it has a job.
-- :tenant; :now; :longest; :limit
SELECT m.id, m.kind, m.finished_at IS NULL
FROM (
    SELECT id, kind, finished_at FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT id, kind, finished_at FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
) AS m LEFT JOIN parked AS p ON p.id = m.id
WHERE NOT coalesce(p.is_claimed = 1 AND p.parked_until > :now AND p.parked_until <= :now + :longest, 0)
LIMIT :limit;

-- name: erase_find_messages
-- As `erase_find`, where jobs are kept elsewhere: past what is being attempted, and what is busy there.
-- :tenant; :now; :longest; :busy = [id, …]; :limit
SELECT m.id, m.kind, 0
FROM (
    SELECT id, kind, state, held_until FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT id, kind, state, held_until FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
) AS m
WHERE
    NOT coalesce(m.state = 'SENT_ATTEMPT' AND m.held_until > :now AND m.held_until <= :now + :longest, 0)
    AND m.id NOT IN (SELECT value FROM json_each(:busy))
LIMIT :limit;

-- name: erase_keys
-- Drops the keys of a tenant. :tenant
DELETE FROM access_keys
WHERE tenant = :tenant;

-- name: erase_left
-- Whether any message to a recipient is left. :recipient; :tenant; :email
SELECT
    EXISTS (SELECT 1 FROM messages WHERE recipient_id = :recipient AND tenant = :tenant)
    OR EXISTS (SELECT 1 FROM messages WHERE to_address = :email AND tenant = :tenant AND recipient_id IS NULL);

-- name: erase_mails
-- Drops what the sandbox kept for a tenant. :tenant; :limit
DELETE FROM inbox
WHERE id IN (SELECT i.id FROM inbox AS i WHERE i.tenant = :tenant LIMIT :limit);

-- name: erase_messages
-- Leaves of messages their ids, states and times. :ids = [id, …]
UPDATE messages
SET
    request_id = '', external_id = NULL, recipient_id = NULL, to_address = NULL, subject = NULL, tags = NULL,
    evidence = NULL, provider_message_id = iif(provider_message_id IS NULL, NULL, ''),
    failure = json_set(failure, '$.reason', '', '$.original_code', NULL)
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: erase_parked
-- Drops parked jobs of a tenant whose messages are gone. :tenant
DELETE FROM parked
WHERE tenant = :tenant;

-- name: erase_ready
-- Drops ready jobs of a tenant whose messages are gone. :tenant
DELETE FROM ready
WHERE tenant = :tenant;

-- name: erase_recipients
-- Drops recipients of a tenant. :tenant; :limit
DELETE FROM recipient_records
WHERE id IN (SELECT r.id FROM recipient_records AS r WHERE r.tenant = :tenant LIMIT :limit);

-- name: erase_requests
-- Drops idempotency keys of a tenant. :tenant; :limit
DELETE FROM idempotency_keys
WHERE tenant = :tenant AND key IN (SELECT k.key FROM idempotency_keys AS k WHERE k.tenant = :tenant LIMIT :limit);

-- name: erase_requests_of_messages
-- Drops the idempotency keys of messages. :ids = [id, …]
DELETE FROM idempotency_keys
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: erase_rest
-- Whether messages, recipients, idempotency keys, mails or suppressions of a tenant are left. :tenant
SELECT
    EXISTS (SELECT 1 FROM messages WHERE tenant = :tenant AND kind = 'email:send')
    OR EXISTS (SELECT 1 FROM messages WHERE tenant = :tenant AND kind <> 'email:send'),
    EXISTS (SELECT 1 FROM recipient_records WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM idempotency_keys WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM inbox WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM suppressions WHERE tenant = :tenant);

-- name: erase_seats
-- Drops the seats of a tenant. :tenant
DELETE FROM seats
WHERE tenant = :tenant;

-- name: erase_suppressions
-- Drops whom a tenant must not write to. :tenant; :limit
DELETE FROM suppressions
WHERE (tenant, key, reason) IN (
    SELECT s.tenant, s.key, s.reason FROM suppressions AS s WHERE s.tenant = :tenant LIMIT :limit
);

-- name: erase_tags
-- Drops tags of a tenant whose messages are gone. :tenant
DELETE FROM message_tags
WHERE tenant = :tenant;

-- name: erase_templates
-- Drops the templates of a tenant. :tenant
DELETE FROM templates
WHERE tenant = :tenant;

-- name: erase_tenant
-- Drops a tenant. :tenant
DELETE FROM tenants
WHERE id = :tenant;

-- name: erase_waiting
-- Unfinished messages to a recipient (those that name it, and those to its address that name nobody) that nobody asked
-- to cancel. :recipient; :tenant; :email; :limit
SELECT id FROM messages
WHERE recipient_id = :recipient AND tenant = :tenant AND finished_at IS NULL AND cancel_requested_at IS NULL
UNION ALL
SELECT id FROM messages
WHERE
    to_address = :email AND tenant = :tenant AND recipient_id IS NULL
    AND finished_at IS NULL AND cancel_requested_at IS NULL
LIMIT :limit;

-- name: prune_events
-- Drops the timelines of messages. :ids = [id, …]
DELETE FROM events
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: prune_messages
-- Drops messages from the ledger. :ids = [id, …]
DELETE FROM messages
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: prune_tags
-- Drops the tags by which messages are found. :ids = [id, …]
DELETE FROM message_tags
WHERE (tenant, tag, created_at, message_no) IN (
    SELECT m.tenant, t.value, m.created_at, m.no
    FROM json_each(:ids) AS i CROSS JOIN messages AS m ON m.id = i.value CROSS JOIN json_each(m.tags) AS t
);

-- name: recipient_drop
-- Takes a recipient away. :id
DELETE FROM recipient_records
WHERE id = :id;

-- name: suppressions_blank
-- Leaves of an address that is suppressed its hash alone. :tenant; :key
UPDATE suppressions
SET address = NULL
WHERE tenant = :tenant AND key = :key;
