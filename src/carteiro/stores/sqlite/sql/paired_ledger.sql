-- name: buried
-- Expiry of those of the messages that are dead letters. :ids = [id, …]
SELECT message_id, moved_at + ttl_ms
FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: declared
-- The claims that have an attempt in flight. :leases = [[id, claim], …]
SELECT l.value ->> 0, l.value ->> 1
FROM json_each(:leases) AS l CROSS JOIN ledger AS m
WHERE m.id = l.value ->> 0 AND m.state = 'SENT_ATTEMPT' AND m.holder = l.value ->> 1;

-- name: open
-- Messages as a worker must know them. :ids = [id, …]
SELECT
    m.id, m.tenant, m.state, m.held_until, m.due_at, m.expires_at, m.attempts, m.charged, m.in_doubt, m.revision,
    m.cancel_requested_at IS NOT NULL, m.provider, m.request_id, m.delivery, m.recipient_id,
    coalesce(
        iif(m.template_type IS NULL, NULL, (
            SELECT iif(p.deleted_at IS NULL, p.retry_preset, NULL) FROM templates AS p
            WHERE p.tenant = m.tenant AND p.type = m.template_type
            ORDER BY p.version DESC LIMIT 1
        )),
        (SELECT t.retry_preset FROM tenants AS t WHERE t.id = m.tenant)
    ),
    (SELECT c.content FROM contents AS c WHERE c.message_no = m.no),
    EXISTS (SELECT 1 FROM suppressions AS s WHERE s.tenant = m.tenant)
FROM json_each(:ids) AS i CROSS JOIN ledger AS m
WHERE m.id = i.value;

-- name: shares
-- The shares of tenants. :ids = [id, …]
SELECT t.id, t.stride, t.cap, t.rate_per_second, t.paused OR t.disabled
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: unfinished_page
-- The next unfinished messages as jobs, in the order of their expiry.
-- :now; :longest; :expires_at, :edge: a message no, as text; :limit
SELECT
    m.id, m.kind, m.tenant, m.priority, m.due_at,
    iif(
        m.state = 'SENT_ATTEMPT' AND m.held_until > :now AND m.held_until <= :now + :longest, m.held_until, m.due_at
    ),
    u.expires_at, CAST(u.message_no AS TEXT)
FROM unfinished AS u CROSS JOIN ledger AS m
WHERE m.no = u.message_no AND (u.expires_at, u.message_no) > (:expires_at, CAST(:edge AS INTEGER))
ORDER BY u.expires_at, u.message_no
LIMIT :limit;

-- name: unfinished_recent
-- Unfinished messages after a number, as jobs. :now; :longest; :after; :limit
SELECT
    id, kind, tenant, priority, due_at,
    iif(state = 'SENT_ATTEMPT' AND held_until > :now AND held_until <= :now + :longest, held_until, due_at), no
FROM ledger
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
FROM json_each(:ids) AS i CROSS JOIN ledger AS m
WHERE m.id = i.value AND m.finished_at IS NULL;
