-- name: dead_letters_drop
-- Removes dead letters from the index, except redriven ones; returns ids and tenants. :ids = [id, …]
DELETE FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids)) AND redriven_at IS NULL
RETURNING message_id, tenant;

-- name: dead_letters_find
-- Dead letters of all tenants, newest first, after the previous page;
-- null matches all. :without; :kind; :reason; :code; :category; :group; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id; :limit
SELECT d.message_id, d.moved_at
FROM dead_letters AS d
WHERE
    d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND d.tenant <> :without
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:code IS NULL OR d.code = :code)
    AND (:category IS NULL OR d.category = :category)
    AND (:group IS NULL OR d.failure_group = :group)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_code
-- Dead letters of all tenants with one code, newest first, after the previous page;
-- null matches all. :without; :kind; :reason; :code; :category; :group; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id; :limit
SELECT d.message_id, d.moved_at
FROM dead_letters AS d
WHERE
    d.code = :code AND d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND d.tenant <> :without
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:category IS NULL OR d.category = :category)
    AND (:group IS NULL OR d.failure_group = :group)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_group
-- Dead letters of all tenants of one group, newest first, after the previous page;
-- null matches all. :without; :kind; :reason; :code; :category; :group; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id; :limit
SELECT d.message_id, d.moved_at
FROM dead_letters AS d
WHERE
    d.failure_group = :group AND d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND d.tenant <> :without
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:category IS NULL OR d.category = :category)
    AND (:code IS NULL OR d.code = :code)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_reason
-- Dead letters of all tenants for one reason, newest first, after the previous page;
-- null matches all. :without; :kind; :reason; :code; :category; :group; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id; :limit
SELECT d.message_id, d.moved_at
FROM dead_letters AS d
WHERE
    d.reason = :reason AND d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND d.tenant <> :without
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:code IS NULL OR d.code = :code)
    AND (:category IS NULL OR d.category = :category)
    AND (:group IS NULL OR d.failure_group = :group)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_tenant
-- Dead letters of one tenant, newest first, after the previous page;
-- null matches all. :tenant; :kind; :reason; :code; :category; :group; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id; :limit
SELECT d.message_id, d.moved_at
FROM dead_letters AS d
WHERE
    d.tenant = :tenant AND d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:code IS NULL OR d.code = :code)
    AND (:category IS NULL OR d.category = :category)
    AND (:group IS NULL OR d.failure_group = :group)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_group
-- Counts of dead letters of all tenants by :by (code, tenant, reason, category or group), the largest group first;
-- null matches all. :without; :kind; :reason; :code; :category; :group; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id
SELECT
    CASE :by WHEN 'code' THEN d.code WHEN 'tenant' THEN d.tenant WHEN 'reason' THEN d.reason
        WHEN 'group' THEN d.failure_group ELSE d.category END AS key,
    count(*), min(d.moved_at), max(d.moved_at)
FROM dead_letters AS d
WHERE
    d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND d.tenant <> :without
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:code IS NULL OR d.code = :code)
    AND (:category IS NULL OR d.category = :category)
    AND (:group IS NULL OR d.failure_group = :group)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
GROUP BY key
ORDER BY count(*) DESC, key;

-- name: dead_letters_group_of_tenant
-- As `dead_letters_group`, of one tenant, by its index. :tenant; :kind; :reason; :code; :category; :group; :is_redriven; :text, in
-- lower case; :moved_after; :before_at and :before_id; :by
SELECT
    CASE :by WHEN 'code' THEN d.code WHEN 'tenant' THEN d.tenant WHEN 'reason' THEN d.reason
        WHEN 'group' THEN d.failure_group ELSE d.category END AS key,
    count(*), min(d.moved_at), max(d.moved_at)
FROM dead_letters AS d
WHERE
    d.tenant = :tenant AND d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:code IS NULL OR d.code = :code)
    AND (:category IS NULL OR d.category = :category)
    AND (:group IS NULL OR d.failure_group = :group)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
GROUP BY key
ORDER BY count(*) DESC, key;

-- name: dead_letters_load
-- Dead letters in the given order, with their contents from the ledger if :is_whole. :ids = [id, …]
SELECT
    d.message_id, d.tenant, d.kind, coalesce(c.content, ''), d.reason, d.failed_attempts, d.failure, d.failed_at,
    d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at, d.failure_group, d.waits_for,
    d.automatic_rounds, d.waits_since
FROM json_each(:ids) AS i
CROSS JOIN dead_letters AS d ON d.message_id = i.value
LEFT JOIN messages AS m ON :is_whole AND m.id = d.message_id
LEFT JOIN contents AS c ON c.message_no = m.no
ORDER BY i.key;

-- name: dead_letters_moved
-- The times at which these dead letters were made. :ids
SELECT message_id, moved_at
FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: dead_letters_restore
-- Puts back dead letters of messages that are still dead and have none; returns ids and tenants. :rows = [[message id,
-- tenant, reason, code, category, failure, failed attempts, failed_at, enqueued_at, moved_at, ttl_ms, group], …]
INSERT INTO dead_letters (
    message_id, tenant, kind, reason, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms,
    failure_group
)
SELECT
    m.id, m.tenant, m.kind, r.value ->> 2, r.value ->> 5, r.value ->> 6, r.value ->> 7, r.value ->> 8, r.value ->> 9,
    r.value ->> 10, r.value ->> 11
FROM json_each(:rows) AS r CROSS JOIN ledger AS m
WHERE m.id = r.value ->> 0 AND m.tenant = r.value ->> 1 AND m.state IN ('FAILED', 'EXPIRED')
ON CONFLICT (message_id) DO NOTHING
RETURNING message_id, tenant;

-- name: redrive_contents
-- Those of the messages that still have their content. :numbers = [number, …]
SELECT message_no
FROM contents
WHERE message_no IN (SELECT value FROM json_each(:numbers));

-- name: redrive_mark
-- Marks dead letters as redriven; automatic rounds count from the last redrive that somebody asked for.
-- :ids = [id, …]; :now; :is_automatic
UPDATE dead_letters
SET redriven_at = :now, automatic_rounds = iif(:is_automatic, automatic_rounds + 1, 0)
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: redrive_put
-- Makes the jobs of messages claimable now, and counts them at their seats. :numbers = [number, …]; :now
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT m.kind, m.tenant, :now, count(*)
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value
WHERE true
GROUP BY m.kind, m.tenant
ON CONFLICT (kind, tenant) DO UPDATE
SET wake_at = min(wake_at, excluded.wake_at), jobs = jobs + excluded.jobs;

INSERT INTO ready (seat, priority, due_at, id, message_no)
SELECT s.no, m.priority, m.due_at, m.id, m.no
FROM json_each(:numbers) AS i CROSS JOIN ledger AS m CROSS JOIN seats AS s
WHERE m.no = i.value AND s.kind = m.kind AND s.tenant = m.tenant;

-- name: revise
-- Sets the content and recipient of a message, also if the old content is gone.
-- :number; :content; :to; :subject; :recipient_id
INSERT INTO contents (message_no, content)
VALUES (:number, :content)
ON CONFLICT (message_no) DO UPDATE SET content = excluded.content;

UPDATE messages
SET to_address = :to, subject = :subject, recipient_id = :recipient_id
WHERE no = :number;
