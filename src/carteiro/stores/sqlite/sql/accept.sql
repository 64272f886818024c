-- name: accept_contents
-- Adds the content of a new message. ? = message no, content
INSERT INTO contents (message_no, content)
VALUES (?, ?);

-- name: accept_counts
-- Message counts of tenants, in the latest window of each length. :tenants = [id, …]
SELECT c.tenant, c.window_ms, c.starts_at, c.count
FROM json_each(:tenants) AS i JOIN api_counts AS c ON c.tenant = i.value;

-- name: accept_keys
-- Answers of idempotency keys that were made after a moment. :keys = [[tenant, key], …]; :after
SELECT k.tenant, k.key, k.digest, k.message_id, k.recipient_id, k.request_id, k.created_at
FROM json_each(:keys) AS i CROSS JOIN idempotency_keys AS k ON k.tenant = i.value ->> 0 AND k.key = i.value ->> 1
WHERE k.created_at > :after;

-- name: accept_known
-- The known ones of these ids. :ids = [id, …]
SELECT m.id, m.created_at, m.recipient_id, m.request_id
FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value;

-- name: accept_messages
-- Adds a message. ? = number, {accepted}, due_at, created_at
INSERT INTO messages (no, {accepted}, due_at, created_at)
VALUES (?, {accepted_values}, ?, ?);

-- name: accept_next_no
-- The number of the next new message; nobody else can take it in this transaction.
SELECT coalesce(max(no), 0) + 1
FROM messages;

-- name: accept_save_counts
-- Stores message counts of tenants; a new window replaces the row of the past one.
-- :rows = [[tenant, window_ms, starts_at, count], …]
INSERT INTO api_counts (tenant, window_ms, starts_at, count)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM json_each(:rows)
WHERE true
ON CONFLICT (tenant, window_ms) DO UPDATE SET starts_at = excluded.starts_at, count = excluded.count;

-- name: accept_save_keys
-- Stores idempotency keys of new messages; replaces expired ones.
-- :rows = [[tenant, key, digest, message id, recipient id, request id], …]; :now
INSERT INTO idempotency_keys (tenant, key, digest, message_id, recipient_id, request_id, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now
FROM json_each(:rows)
WHERE true
ON CONFLICT (tenant, key) DO UPDATE
SET digest = excluded.digest, message_id = excluded.message_id, recipient_id = excluded.recipient_id,
    request_id = excluded.request_id, created_at = excluded.created_at;

-- name: accept_tags
-- Indexes a new message by one of its tags. ? = tenant, tag, created_at, message no
INSERT OR IGNORE INTO message_tags (tenant, tag, created_at, message_no)
VALUES (?, ?, ?, ?);

-- name: accept_tenants
-- The known ones of these tenants, and whether they are disabled. :ids = [id, …]
SELECT t.id, t.disabled
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: put_delayed
-- Makes a job claimable at a time. ? = message no, seat, until, id, claims
INSERT INTO delayed (message_no, seat, until, id, claims)
VALUES (?, ?, ?, ?, ?);

-- name: put_ready
-- Makes a job claimable now. ? = seat, priority, due_at, id, message no, claims
INSERT INTO ready (seat, priority, due_at, id, message_no, claims)
VALUES (?, ?, ?, ?, ?, ?);

-- name: put_unfinished
-- Records the expiry of an unfinished message. ? = expires_at, message no
INSERT INTO unfinished (expires_at, message_no)
VALUES (?, ?);

-- name: take_seats
-- Finds or adds the seats of new jobs, sets their alarms (never later than they were) and counts their jobs; only claim
-- changes the ring. :rows = [[kind, tenant, wake_at, jobs], …]
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM json_each(:rows)
WHERE true
ON CONFLICT (kind, tenant) DO UPDATE
SET wake_at = min(wake_at, excluded.wake_at), jobs = jobs + excluded.jobs
RETURNING kind, tenant, no;

-- name: recipient_known
-- Finds a recipient of a tenant: by external id, else by document (one that has no other external id).
-- :tenant; :external_id; :cpf_cnpj_hash
SELECT id FROM recipient_records
WHERE tenant = :tenant AND external_id = :external_id AND deleted_at IS NULL
UNION ALL
SELECT id FROM recipient_records
WHERE
    tenant = :tenant AND cpf_cnpj_hash = :cpf_cnpj_hash AND deleted_at IS NULL
    AND (:external_id IS NULL OR external_id IS NULL)
LIMIT 1;
