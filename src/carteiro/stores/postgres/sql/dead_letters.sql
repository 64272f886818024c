-- name: dead_letters_drop
-- Removes dead letters from the index, except redriven ones; returns ids and tenants. :ids = [id, …]
WITH mine AS (
    SELECT message_id FROM carteiro.dead_letters
    WHERE message_id = ANY (:ids::text[]) AND redriven_at IS NULL
    ORDER BY message_id
    FOR UPDATE
)
DELETE FROM carteiro.dead_letters
WHERE message_id = ANY (ARRAY(SELECT message_id FROM mine))
RETURNING message_id, tenant;

-- name: dead_letters_find
-- Dead letters of all tenants, newest first, after the previous page; null matches all.
-- :tenant; :without; :kind; :reason; :code; :category; :group; :is_redriven; :text; :moved_after; :before_at; :before_id; :limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.moved_at >= :moved_after::bigint AND (d.moved_at, d.message_id) < (:before_at::bigint, :before_id::text)
    AND d.tenant <> :without::text
    AND carteiro.is_wanted(
        d, :tenant::text, :kind::text, :reason::text, :code::text, :category::text, :group::text, :is_redriven::boolean, :text::text
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_code
-- Dead letters of all tenants with one code, newest first, after the previous page; null matches
-- all. :tenant; :without; :kind; :reason; :code; :category; :group; :is_redriven; :text; :moved_after; :before_at; :before_id; :limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.code = :code AND d.moved_at >= :moved_after::bigint AND (d.moved_at, d.message_id) < (:before_at::bigint, :before_id::text)
    AND d.tenant <> :without::text
    AND carteiro.is_wanted(
        d, :tenant::text, :kind::text, :reason::text, :code::text, :category::text, :group::text, :is_redriven::boolean, :text::text
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_group
-- Dead letters of all tenants of one group, newest first, after the previous page; null matches
-- all. :tenant; :without; :kind; :reason; :code; :category; :group; :is_redriven; :text; :moved_after; :before_at; :before_id; :limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.failure_group = :group AND d.moved_at >= :moved_after::bigint AND (d.moved_at, d.message_id) < (:before_at::bigint, :before_id::text)
    AND d.tenant <> :without::text
    AND carteiro.is_wanted(
        d, :tenant::text, :kind::text, :reason::text, :code::text, :category::text, :group::text, :is_redriven::boolean, :text::text
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_reason
-- Dead letters of all tenants for one reason, newest first, after the previous page; null matches
-- all. :tenant; :without; :kind; :reason; :code; :category; :group; :is_redriven; :text; :moved_after; :before_at; :before_id; :limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.reason = :reason AND d.moved_at >= :moved_after::bigint AND (d.moved_at, d.message_id) < (:before_at::bigint, :before_id::text)
    AND d.tenant <> :without::text
    AND carteiro.is_wanted(
        d, :tenant::text, :kind::text, :reason::text, :code::text, :category::text, :group::text, :is_redriven::boolean, :text::text
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_find_by_tenant
-- Dead letters of one tenant, newest first, after the previous page; null matches all.
-- :tenant; :kind; :reason; :code; :category; :group; :is_redriven; :text; :moved_after; :before_at; :before_id; :limit
SELECT d.message_id, d.moved_at
FROM carteiro.dead_letters AS d
WHERE
    d.tenant = :tenant AND d.moved_at >= :moved_after::bigint AND (d.moved_at, d.message_id) < (:before_at::bigint, :before_id::text)
    AND carteiro.is_wanted(
        d, :tenant::text, :kind::text, :reason::text, :code::text, :category::text, :group::text, :is_redriven::boolean, :text::text
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;

-- name: dead_letters_group
-- Counts of dead letters by one field, the largest group first; null matches all.
-- :tenant; :without; :kind; :reason; :code; :category; :group; :is_redriven; :text; :moved_after; :before_at; :before_id; :by
SELECT key, count(*), min(moved_at), max(moved_at)
FROM (
    SELECT
        CASE :by::text WHEN 'code' THEN d.code WHEN 'tenant' THEN d.tenant WHEN 'reason' THEN d.reason
            WHEN 'group' THEN d.failure_group ELSE d.category END AS key,
        d.moved_at
    FROM carteiro.dead_letters AS d
    WHERE
        d.moved_at >= :moved_after::bigint AND (d.moved_at, d.message_id) < (:before_at::bigint, :before_id::text)
        AND d.tenant <> :without::text
        AND carteiro.is_wanted(
            d, :tenant::text, :kind::text, :reason::text, :code::text, :category::text, :group::text, :is_redriven::boolean, :text::text
        )
) AS wanted
GROUP BY key
ORDER BY count(*) DESC, key;

-- name: dead_letters_group_of_tenant
-- As `dead_letters_group`, of one tenant, by its index.
-- :tenant; :kind; :reason; :code; :category; :group; :is_redriven; :text; :moved_after; :before_at; :before_id; :by
SELECT key, count(*), min(moved_at), max(moved_at)
FROM (
    SELECT
        CASE :by::text WHEN 'code' THEN d.code WHEN 'tenant' THEN d.tenant WHEN 'reason' THEN d.reason
            WHEN 'group' THEN d.failure_group ELSE d.category END AS key,
        d.moved_at
    FROM carteiro.dead_letters AS d
    WHERE
        d.tenant = :tenant AND d.moved_at >= :moved_after::bigint
        AND (d.moved_at, d.message_id) < (:before_at::bigint, :before_id::text)
        AND carteiro.is_wanted(
            d, :tenant::text, :kind::text, :reason::text, :code::text, :category::text, :group::text, :is_redriven::boolean, :text::text
        )
) AS wanted
GROUP BY key
ORDER BY count(*) DESC, key;

-- name: dead_letters_load
-- Dead letters in the given order, with their contents from the ledger if :is_whole. :ids = [id, …]
SELECT
    d.message_id, d.tenant, d.kind, coalesce(c.content, ''), d.reason, d.failed_attempts, d.failure, d.failed_at,
    d.enqueued_at, d.moved_at, d.ttl_ms, d.redriven_at, d.failure_group, d.waits_for,
    d.automatic_rounds, d.waits_since
FROM unnest(:ids::text[]) WITH ORDINALITY AS i (id, place)
CROSS JOIN LATERAL (SELECT * FROM carteiro.dead_letters AS n WHERE n.message_id = i.id LIMIT 1) AS d
LEFT JOIN LATERAL (
    SELECT n.content FROM carteiro.messages AS n
    WHERE :is_whole::boolean AND n.no = d.message_no
    LIMIT 1
) AS c ON true
ORDER BY i.place;

-- name: dead_letters_moved
-- The times at which these dead letters were made. :ids = [id, …]
SELECT message_id, moved_at
FROM carteiro.dead_letters
WHERE message_id = ANY (:ids::text[]);

-- name: dead_letters_restore
-- Puts back dead letters of messages that are still dead and have none. The entries are locked: a concurrent redrive or
-- prune comes either before this, or finds the dead letter. Returns ids and tenants. :rows = [[message id, tenant, reason, code, category,
-- failure, failed attempts, failed_at, enqueued_at, moved_at, ttl_ms, group], …]
WITH told AS (
    SELECT DISTINCT ON (r.id) r.*
    FROM unnest(
        :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::json[],
        :rows_6::integer[], :rows_7::bigint[], :rows_8::bigint[], :rows_9::bigint[], :rows_10::bigint[],
        :rows_11::text[]
    ) AS r (
        id, tenant, reason, code, category, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms,
        failure_group
    )
),
dead AS (
    SELECT m.no, m.kind, m.to_address, r.*
    FROM told AS r
    JOIN carteiro.messages AS m ON m.id = r.id AND m.tenant = r.tenant
    JOIN carteiro.entries AS e ON e.message_no = m.no AND e.state IN ('FAILED', 'EXPIRED')
    ORDER BY m.no
    FOR UPDATE OF e
)
INSERT INTO carteiro.dead_letters (
    message_id, message_no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at, enqueued_at,
    moved_at, ttl_ms, failure_group, said
)
SELECT
    id, no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms,
    failure_group, carteiro.said(code, failure, to_address)
FROM dead
ON CONFLICT (message_id) DO NOTHING
RETURNING message_id, tenant;

-- name: redrive_contents
-- Those of the messages that still have their content. :numbers = [number, …]
SELECT no
FROM carteiro.messages
WHERE no = ANY (ARRAY(SELECT unnest(:numbers::bigint[]))) AND content IS NOT NULL;

-- name: redrive_lock
-- Locks the entries of messages until the transaction ends. :ids = [id, …]
SELECT FROM carteiro.entries
WHERE
    message_no = ANY (ARRAY(
        SELECT m.no FROM carteiro.messages AS m WHERE m.id = ANY (ARRAY(SELECT unnest(:ids::text[])))
    ))
ORDER BY message_no
FOR UPDATE;

-- name: redrive_mark
-- Marks dead letters as redriven; automatic rounds count from the last redrive that somebody asked for.
-- :ids = [id, …]; :now; :is_automatic
WITH mine AS (
    SELECT message_id FROM carteiro.dead_letters
    WHERE message_id = ANY (:ids::text[])
    ORDER BY message_id
    FOR UPDATE
)
UPDATE carteiro.dead_letters
SET redriven_at = :now, automatic_rounds = CASE WHEN :is_automatic::boolean THEN automatic_rounds + 1 ELSE 0 END
WHERE message_id = ANY (ARRAY(SELECT message_id FROM mine));

-- name: redrive_put
-- Makes the jobs of messages claimable now, and leaves notes of them. :numbers = [number, …]; :now
WITH put AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT m.tenant, m.kind, carteiro.rank(m.priority, e.due_at), m.id, m.no
    FROM unnest(:numbers::bigint[]) AS i (no)
    CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = i.no LIMIT 1) AS m
    CROSS JOIN LATERAL (SELECT n.due_at FROM carteiro.entries AS n WHERE n.message_no = i.no LIMIT 1) AS e
    RETURNING tenant, kind, rank
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
SELECT kind, tenant, count(*), :now::bigint, min(rank)
FROM put
GROUP BY kind, tenant;

-- name: revise
-- Sets the content and recipient of a message, also if the old content is gone.
-- :number; :content; :to; :subject; :recipient_id
WITH revised AS (
    UPDATE carteiro.messages
    SET content = :content, to_address = :to, subject = :subject, recipient_id = :recipient_id
    WHERE no = :number
    RETURNING id, to_address
)
UPDATE carteiro.dead_letters AS d
SET said = carteiro.said(d.code, d.failure, r.to_address)
FROM revised AS r
WHERE d.message_id = r.id;
