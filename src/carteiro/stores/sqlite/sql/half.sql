-- name: buried
-- Until when those of the messages are kept that are dead letters. :ids = [id, …]
SELECT message_id, moved_at + ttl_ms
FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: declared
-- The claims that have an attempt under way. :leases = [[id, claim], …]
SELECT l.value ->> 0, l.value ->> 1
FROM json_each(:leases) AS l JOIN messages AS m ON m.id = l.value ->> 0
WHERE m.state = 'SENT_ATTEMPT' AND m.holder = l.value ->> 1;

-- name: limits
-- The limits that all claims of a kind share.
SELECT kind, limit_count, limit_per_ms
FROM ring_clock
WHERE limit_count IS NOT NULL;

-- name: open
-- What the ledger knows of the messages, in the order asked: the entry, then what a worker needs beside it; no entry
-- where there is no message. :ids = [id, …]
SELECT
    m.id, m.tenant, m.kind, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged,
    m.in_doubt, m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider,
    m.provider_message_id, m.failure, m.duration_ms, m.finished_at,
    m.request_id, m.delivery, m.recipient_id, m.template_type, t.retry_preset, c.content,
    EXISTS (SELECT 1 FROM suppressions AS s WHERE s.tenant = m.tenant)
FROM json_each(:ids) AS i
LEFT JOIN messages AS m ON m.id = i.value
LEFT JOIN tenants AS t ON t.id = m.tenant
LEFT JOIN contents AS c ON c.message_no = m.no
ORDER BY i.key;

-- name: shares
-- What tenants may have of the machine. :ids = [id, …]
SELECT t.id, t.stride, t.cap, t.rate_per_second, t.paused OR t.disabled
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: shares_all
-- What the next tenants, by id, may have of the machine. :after; :limit
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM tenants
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: unfinished_page
-- The next unfinished messages as jobs, in the order of their expiry. :now; :longest; :expires_at, :id; :limit
SELECT
    id, kind, tenant, priority, due_at,
    iif(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, held_until, due_at), expires_at
FROM messages INDEXED BY messages_by_expiry
WHERE finished_at IS NULL AND (expires_at, id) > (:expires_at, :id)
ORDER BY expires_at, id
LIMIT :limit;

-- name: unfinished_recent
-- Unfinished messages after a number, as jobs. :now; :longest; :after; :limit
SELECT
    id, kind, tenant, priority, due_at,
    iif(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, held_until, due_at), no
FROM messages
WHERE no > :after AND finished_at IS NULL
ORDER BY no
LIMIT :limit;

-- name: unfinished_these
-- Those of the messages that are unfinished, as jobs. :now; :longest; :ids = [id, …]
SELECT
    m.id, m.kind, m.tenant, m.priority, m.due_at,
    iif(
        m.state = 'SENT_ATTEMPT' AND m.held_until > :now AND m.held_until <= :now + :longest, m.held_until, m.due_at
    )
FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value
WHERE m.finished_at IS NULL;
