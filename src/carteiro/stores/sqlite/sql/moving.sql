-- name: move_access_keys
-- The next keys. :after = [id]
SELECT id, tenant, key_hash, hint, created_at, expires_at, revoked_at, last_used_at, name, role
FROM access_keys
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_alerts
-- The next alerts. :after = [name, subject]
SELECT {alert}
FROM alerts
WHERE (name, subject) > (:after ->> 0, :after ->> 1)
ORDER BY name, subject;

-- name: move_notices
-- The next notices. :after = [id, channel]
SELECT id, channel, tenant, at, due_at, tries, error, document
FROM notices
WHERE (id, channel) > (:after ->> 0, :after ->> 1)
ORDER BY id, channel;

-- name: move_silences
-- The next silences. :after = [id]
SELECT {silence}
FROM silences
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_audit
-- The next audit rows. :after = [id]
SELECT {audit}
FROM audit
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_api_counts
-- The next counts of requests. :after = [tenant, window_ms]
SELECT tenant, window_ms, starts_at, count
FROM api_counts
WHERE (tenant, window_ms) > (:after ->> 0, :after ->> 1)
ORDER BY tenant, window_ms;

-- name: move_begin
-- The statements after which nothing new is accepted or claimed, and jobs stay where they are kept. :text
SELECT format(
    'CREATE TRIGGER moved_%s BEFORE INSERT ON %s %s BEGIN SELECT RAISE(ABORT, %Q); END',
    value ->> 0, value ->> 0, value ->> 1, :text
)
FROM json_each(
    '[["messages", ""], ["leased", ""], ["overrides", "WHEN NEW.name = ''queue''"]]'
);

-- name: move_close
-- The statements after which no table can be changed. :text
SELECT format(
    'CREATE TRIGGER moved_%s_%s BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, %Q); END',
    lower(o.value), t.name, o.value, t.name, :text
)
FROM sqlite_schema AS t CROSS JOIN json_each('["INSERT", "UPDATE", "DELETE"]') AS o
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%';

-- name: move_counts
-- The number of rows to copy, by table. Rows without a message are not visible, and are not copied.
SELECT 'tenants', count(*) FROM tenants
UNION ALL SELECT 'tiers', count(*) FROM tiers
UNION ALL SELECT 'sender_domains', count(*) FROM sender_domains
UNION ALL SELECT 'access_keys', count(*) FROM access_keys
UNION ALL SELECT 'audit', count(*) FROM audit
UNION ALL SELECT 'recipient_records', count(*) FROM recipient_records
UNION ALL SELECT 'messages', count(*) FROM messages
UNION ALL SELECT 'entries', count(*) FROM entries
UNION ALL SELECT 'contents', count(*) FROM contents CROSS JOIN messages ON no = message_no
UNION ALL SELECT 'events', count(*) FROM events
UNION ALL SELECT 'unfinished', count(*) FROM unfinished
UNION ALL SELECT 'message_tags', count(*) FROM message_tags
UNION ALL SELECT 'dead_letters', count(*) FROM dead_letters AS d JOIN messages AS m ON m.id = d.message_id
UNION ALL SELECT 'redrives', count(*) FROM redrives
UNION ALL SELECT 'redrive_items', count(*) FROM redrive_items
UNION ALL SELECT 'idempotency_keys', count(*) FROM idempotency_keys
UNION ALL SELECT 'api_counts', count(*) FROM api_counts
UNION ALL SELECT 'templates', count(*) FROM templates
UNION ALL SELECT 'suppressions', count(*) FROM suppressions
UNION ALL SELECT 'inbox', count(*) FROM inbox
UNION ALL SELECT 'overrides', count(*) FROM overrides WHERE name <> 'moved'
UNION ALL SELECT 'rollups', count(*) FROM rollups
UNION ALL SELECT 'rollup_notes', count(*) FROM rollup_notes
UNION ALL SELECT 'alerts', count(*) FROM alerts
UNION ALL SELECT 'silences', count(*) FROM silences
UNION ALL SELECT 'notices', count(*) FROM notices
UNION ALL SELECT 'failure_groups', count(*) FROM failure_groups
UNION ALL SELECT 'failure_counts', count(*) FROM failure_counts
UNION ALL SELECT 'ring_clock', count(*) FROM ring_clock
UNION ALL SELECT 'seats', count(*) FROM seats
UNION ALL SELECT 'jobs', count(*) FROM unfinished;

-- name: move_dead_letters
-- The next dead letters of existing messages. :after = [message id]
SELECT
    d.message_id, m.no AS message_no, d.tenant, d.kind, d.reason, d.code, d.category, d.failure, d.failed_attempts,
    d.failed_at, d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at, d.failure_group,
    d.waits_for, d.automatic_rounds, d.waits_since,
    lower(
        d.code || char(10) || coalesce(replace(d.failure, '\u0000', '\ufffd') ->> 'reason', '')
        || char(10) || coalesce(m.to_address, '')
    ) AS said
FROM dead_letters AS d CROSS JOIN messages AS m ON m.id = d.message_id
WHERE d.message_id > (:after ->> 0)
ORDER BY d.message_id;

-- name: move_entries
-- The next entries. :after = [message no]
SELECT
    message_no, state, due_at, expires_at, attempts, charged, in_doubt, round, revision, holder, held_until,
    cancel_requested_at, evidence, provider, provider_message_id, failure, duration_ms, finished_at, retry_of, tenant,
    is_email, created_at, timeline
FROM entries
WHERE message_no > (:after ->> 0)
ORDER BY message_no;

-- name: move_events
-- The next events that a timeline has no room for. :after = [message no, position]
SELECT message_no, position, type, metadata, created_at
FROM events
WHERE (message_no, position) > (:after ->> 0, :after ->> 1)
ORDER BY message_no, position;

-- name: move_failure_counts
-- The next hours of failure groups. :after = [group, at, tenant]
SELECT group_id, at, tenant, attempts, deaths, first_at, last_at, samples, retried, history
FROM failure_counts
WHERE (group_id, at, tenant) > (:after ->> 0, :after ->> 1, :after ->> 2)
ORDER BY group_id, at, tenant;

-- name: move_failure_groups
-- The next failure groups. :after = [id]
SELECT {failure_group}
FROM failure_groups
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_idempotency_keys
-- The next idempotency keys. :after = [tenant, key]
SELECT tenant, key, digest, message_id, recipient_id, request_id, created_at
FROM idempotency_keys
WHERE (tenant, key) > (:after ->> 0, :after ->> 1)
ORDER BY tenant, key;

-- name: move_in_flight
-- The number of live leases and holds, and the end of the last one. :now; :longest
SELECT count(*), max(until)
FROM leased
WHERE until > :now AND until <= :now + :longest;

-- name: move_inbox
-- The next mails of the inbox. :after = [id]
SELECT id, message_id, tenant, to_address, subject, content, provider_message_id, created_at
FROM inbox
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_jobs
-- The next jobs: until when each waits (NULL: it is ready, or was lost by who had claimed it), and how often it was
-- claimed. :after = [message no]
SELECT m.no AS message_no, d.until AS parked_until, coalesce(l.claims, d.claims, r.claims, 0) AS claims
FROM ledger AS m
LEFT JOIN seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
LEFT JOIN leased AS l ON l.seat = s.no AND l.message_no = m.no
LEFT JOIN delayed AS d ON d.message_no = m.no
LEFT JOIN ready AS r ON r.seat = s.no AND r.priority = m.priority AND r.due_at = m.due_at AND r.id = m.id
WHERE m.no > (:after ->> 0) AND m.finished_at IS NULL
ORDER BY m.no;

-- name: move_message_tags
-- The next tags. :after = [tenant, tag, created_at, message no]
SELECT tenant, tag, created_at, message_no
FROM message_tags
WHERE (tenant, tag, created_at, message_no) > (:after ->> 0, :after ->> 1, :after ->> 2, :after ->> 3)
ORDER BY tenant, tag, created_at, message_no;

-- name: move_messages
-- The next messages as accepted, with their contents. :after = [message no]
SELECT no, {accepted}, due_at, created_at, content
FROM messages LEFT JOIN contents ON message_no = no
WHERE no > (:after ->> 0)
ORDER BY no;

-- name: move_open
-- The statements that undo `move_begin` and `move_close`.
SELECT format('DROP TRIGGER %s', name) FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'moved%';

-- name: move_overrides
-- The next settings that were changed at run time, without our own mark. :after = [name]
SELECT name, setting FROM overrides WHERE name > (:after ->> 0) AND name <> 'moved' ORDER BY name;

-- name: move_recipient_records
-- The next recipients, deleted ones included. :after = [id]
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_redrive_items
-- The next messages of redrives. :after = [redrive, message id]
SELECT redrive, message_id, run, at, result
FROM redrive_items
WHERE (redrive, message_id) > (:after ->> 0, :after ->> 1)
ORDER BY redrive, message_id;

-- name: move_redrives
-- The next redrives. :after = [id]
SELECT {redrive}, is_clean
FROM redrives
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_ring_clock
-- The next clocks and send limits of kinds. :after = [kind]
SELECT kind, v, turn, seen_at, limit_count, limit_per_ms, draws
FROM ring_clock
WHERE kind > (:after ->> 0)
ORDER BY kind;

-- name: move_rollup_notes
-- The next notes. :after = [number]
SELECT no, what, at, figures
FROM rollup_notes
WHERE no > :after ->> 0
ORDER BY no;

-- name: move_rollups
-- The next figures. :after = [span, tenant, template, provider, at]
SELECT span, tenant, template, provider, at, weight, sent, failed, figures
FROM rollups
WHERE
    (span, tenant, template, provider, at)
    > (:after ->> 0, :after ->> 1, :after ->> 2, :after ->> 3, :after ->> 4)
ORDER BY span, tenant, template, provider, at;

-- name: move_seats
-- The next seats of tenants; their alarms are set again in the target. :after = [kind, tenant]
SELECT kind, tenant, vt, last_turn, processed, last_processed_at, consecutive
FROM seats
WHERE (kind, tenant) > (:after ->> 0, :after ->> 1)
ORDER BY kind, tenant;

-- name: move_sender_domains
-- The next domains of tenants. :after = [domain]
SELECT domain, tenant
FROM sender_domains
WHERE domain > (:after ->> 0)
ORDER BY domain;

-- name: move_suppressions
-- The next suppressions. :after = [tenant, key, reason]
SELECT tenant, key, reason, address, created_at, expires_at, is_active, bounces
FROM suppressions
WHERE (tenant, key, reason) > (:after ->> 0, :after ->> 1, :after ->> 2)
ORDER BY tenant, key, reason;

-- name: move_templates
-- The next versions of templates. :after = [tenant, type, version]
SELECT
    tenant, type, version, subject, html, text, retry_preset, one_click_unsubscribe, automatic_redrive, created_at,
    deleted_at
FROM templates
WHERE (tenant, type, version) > (:after ->> 0, :after ->> 1, :after ->> 2)
ORDER BY tenant, type, version;

-- name: move_tenants
-- The next tenants. :after = [id]
SELECT
    id, name, tier, weight, stride, cap, rate_per_second, paused, disabled, default_from, from_domains,
    allowed_networks, limits, retry_preset, external_id_is_key, contact, automatic_redrive, next_token_us, created_at
FROM tenants
WHERE id > (:after ->> 0)
ORDER BY id;

-- name: move_tiers
-- The next tiers. :after = [name]
SELECT name, weight FROM tiers WHERE name > (:after ->> 0) ORDER BY name;

-- name: move_unfinished
-- The next unfinished messages. :after = [expires_at, message no]
SELECT expires_at, message_no
FROM unfinished
WHERE (expires_at, message_no) > (:after ->> 0, :after ->> 1)
ORDER BY expires_at, message_no;
