-- name: last_seen
-- When somebody last took or renewed the lead of a task of upkeep.
SELECT max(seen_at) FROM leads;

-- name: lead
-- Takes or renews the lead of a task, unless another has it; answers a row if it was taken. :name; :holder; :now; :until
INSERT INTO leads (name, holder, until, seen_at)
VALUES (:name, :holder, :until, :now)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, until = excluded.until, seen_at = excluded.seen_at
WHERE holder = excluded.holder OR until <= :now OR until > excluded.until
RETURNING name;

-- name: prune_contents
-- Drops the contents of messages. :ids = [id, …]
DELETE FROM contents
WHERE message_no IN (SELECT m.no FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value);

-- name: prune_counts
-- Drops what was counted in windows that are over: at most a few rows a tenant are looked at. :now
DELETE FROM api_counts
WHERE starts_at + window_ms <= :now;

-- name: prune_find
-- The next page of messages in order of their ids, and what of each is past its retention.
-- :after; :limit; :bodies_before; :histories_before (null keeps)
SELECT
    m.id,
    m.finished_at <= :bodies_before AND d.message_id IS NULL,
    m.finished_at <= :histories_before AND d.message_id IS NULL
FROM messages AS m LEFT JOIN dead_letters AS d ON d.message_id = m.id
WHERE m.id > :after
ORDER BY m.id
LIMIT :limit;

-- name: prune_inbox
-- Drops what the sandbox kept of messages. :ids = [id, …]
DELETE FROM inbox
WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: prune_keys
-- Drops idempotency keys that stand for nothing any more, oldest first. :before; :limit
DELETE FROM idempotency_keys
WHERE (tenant, key) IN (
    SELECT tenant, key FROM idempotency_keys
    WHERE created_at <= :before
    ORDER BY created_at
    LIMIT :limit
);

-- name: prune_suppressions
-- Drops suppressions that are over, the longest first. :now; :limit
DELETE FROM suppressions
WHERE (tenant, key, reason) IN (
    SELECT tenant, key, reason FROM suppressions
    WHERE expires_at <= :now
    ORDER BY expires_at
    LIMIT :limit
);
