-- name: by_index
-- Until the end of the transaction, plans use the index that fits, in its order, regardless of statistics; and are made
-- for the given values, so that `$1 IS NULL OR …` costs nothing.
SELECT
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true);

-- name: cursor_id
-- The id of a message. :no
SELECT id FROM carteiro.messages WHERE no = :no;

-- name: cursor_place
-- The number after which a page starts: of the cursor's message or, if it was deleted, of the next by id at its time.
-- :at; :id; :tenant, null matches all
SELECT coalesce(
    (SELECT no FROM carteiro.messages WHERE id = :id AND created_at = :at AND (:tenant::text IS NULL OR tenant = :tenant)),
    (
        SELECT 1 + max(no)
        FROM (
            SELECT no, id FROM carteiro.messages WHERE tenant = :tenant AND kind = 'email:send' AND created_at = :at
            UNION ALL
            SELECT no, id FROM carteiro.messages WHERE tenant = :tenant AND kind <> 'email:send' AND created_at = :at
            UNION ALL
            SELECT no, id FROM carteiro.messages WHERE :tenant IS NULL AND created_at = :at
        ) AS m
        WHERE id < :id
    ),
    0
);

-- name: external_id_tenants
-- The tenants with messages of this external id: skips from tenant to tenant in the index.
-- :external_id
WITH RECURSIVE found (tenant) AS (
    (
        SELECT tenant FROM carteiro.messages
        WHERE external_id IS NOT NULL AND external_id = :external_id::text
        ORDER BY external_id, tenant
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT m.tenant FROM carteiro.messages AS m
        WHERE m.external_id IS NOT NULL AND m.external_id = :external_id::text AND m.tenant > f.tenant
        ORDER BY m.external_id, m.tenant
        LIMIT 1
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;

-- name: place
-- The place of a message's job, the standing of its tenant with the notes applied, the send limit of its kind, and the
-- jobs before it: ready ones and parked ones, each at most :most, and the first time of any. A job whose message is
-- finished is only not cleared away yet. :id; :now; :longest; :never
SELECT
    coalesce(l.parked_until, d.parked_until), l.claim_id IS NOT NULL, coalesce(l.claims, d.claims, r.claims, 0),
    CASE
        WHEN t.paused OR t.disabled THEN :never::bigint
        WHEN s.tenant IS NULL OR s.wake_at IS NOT NULL THEN least(s.wake_at, (
            SELECT min(n.wake_at) FROM carteiro.unseen_notes() AS n
            WHERE n.tenant = m.tenant AND (n.kind = m.kind OR n.kind = '')
        ))
    END,
    (
        SELECT coalesce(sum(CASE
            WHEN l.parked_until > :now THEN cardinality(l.numbers)
            ELSE (
                SELECT count(*) FROM carteiro.ends_of(l.claim_id, l.numbers, l.parked_until) AS u
                WHERE u.until > :now AND u.until <= :now + :longest::bigint
            )
        END), 0)::bigint
        FROM carteiro.ring_clock AS k JOIN carteiro.leased AS l ON l.kind = k.kind
        WHERE l.parked_until <= :now + :longest::bigint AND l.tenant = m.tenant
    ),
    c.limit_count, c.limit_per_ms, c.draws, before.jobs,
    (
        SELECT count(*) FROM (
            SELECT FROM carteiro.delayed AS a
            WHERE
                a.tenant = m.tenant AND a.kind = m.kind
                AND (a.parked_until, a.id) < (coalesce(d.parked_until, m.due_at), coalesce(d.id, ''))
            ORDER BY a.parked_until
            LIMIT :most
        ) AS parked
    ),
    least(before.since, carteiro.due_of(r.rank), (
        SELECT a.parked_until FROM carteiro.delayed AS a
        WHERE a.tenant = m.tenant AND a.kind = m.kind
        ORDER BY a.parked_until
        LIMIT 1
    ))
FROM carteiro.ledger AS m
LEFT JOIN carteiro.tenants AS t ON t.id = m.tenant
LEFT JOIN LATERAL carteiro.lease_of(m.no, m.tenant, m.kind) AS l ON true
LEFT JOIN carteiro.delayed AS d ON d.message_no = m.no
LEFT JOIN carteiro.ready AS r
    ON
        r.tenant = m.tenant AND r.kind = m.kind AND r.rank = carteiro.rank(m.priority, m.due_at)
        AND r.id = m.id
LEFT JOIN carteiro.seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
LEFT JOIN carteiro.ring_clock AS c ON c.kind = m.kind
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, min(carteiro.due_of(f.rank)) AS since
    FROM (
        SELECT a.rank, a.message_no FROM carteiro.ready AS a
        WHERE
            a.tenant = m.tenant AND a.kind = m.kind
            AND (a.rank, a.id) < (carteiro.rank(m.priority, m.due_at), coalesce(r.id, ''))
        ORDER BY a.rank
        LIMIT :most
    ) AS f
    WHERE (SELECT e.finished_at FROM carteiro.entries AS e WHERE e.message_no = f.message_no) IS NULL
) AS before
WHERE m.id = :id AND m.finished_at IS NULL;

-- name: provider_id_tenants
-- The tenants with messages of this provider's id: skips from tenant to tenant in the index.
-- :provider_id
WITH RECURSIVE found (tenant) AS (
    (
        SELECT tenant FROM carteiro.entries
        WHERE provider_message_id <> '' AND provider_message_id = :provider_id::text
        ORDER BY provider_message_id, tenant
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT m.tenant FROM carteiro.entries AS m
        WHERE m.provider_message_id <> '' AND m.provider_message_id = :provider_id::text AND m.tenant > f.tenant
        ORDER BY m.provider_message_id, m.tenant
        LIMIT 1
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;

-- name: tag_tenants
-- The tenants that have messages with a tag. :tag
SELECT t.id
FROM carteiro.tenants AS t
CROSS JOIN LATERAL (SELECT FROM carteiro.message_tags AS g WHERE g.tenant = t.id AND g.tag = :tag LIMIT 1) AS g;

-- name: to_tenants
-- The tenants with messages to an address: skips from tenant to tenant in the index. :to
WITH RECURSIVE found (tenant) AS (
    (
        SELECT tenant FROM carteiro.messages
        WHERE to_address IS NOT NULL AND to_address = :to::text
        ORDER BY to_address, tenant
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT m.tenant FROM carteiro.messages AS m
        WHERE m.to_address IS NOT NULL AND m.to_address = :to::text AND m.tenant > f.tenant
        ORDER BY m.to_address, m.tenant
        LIMIT 1
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;

-- name: unfinished
-- The number of jobs, including those that are only in notes. :tenant, null matches all
SELECT coalesce(sum(jobs), 0)::bigint
FROM carteiro.seats_and_notes
WHERE :tenant::text IS NULL OR tenant = :tenant;

-- name: unfinished_messages
-- The number of unfinished messages, counted up to :most.
SELECT count(*)
FROM (SELECT FROM carteiro.unfinished LIMIT :most) AS u;

-- name: walk_all
-- All messages, newest first, after a given one. :since; :at, :no; :limit
SELECT created_at, no
FROM carteiro.messages
WHERE created_at >= :since AND (created_at, no) < (:at, :no)
ORDER BY created_at DESC, no DESC
LIMIT :limit;

-- name: walk_attempts
-- Messages that may have an open attempt, as their job is or was claimed, newest first, after a given one.
-- :tenant, null matches all; :since; :at, :no; :limit
SELECT m.created_at, m.no
FROM (
    SELECT n AS message_no FROM carteiro.leased AS l, unnest(l.numbers) AS n WHERE :tenant::text IS NULL OR l.tenant = :tenant
    UNION
    SELECT message_no FROM carteiro.ready WHERE claims > 0 AND (:tenant IS NULL OR tenant = :tenant)
    UNION
    SELECT message_no FROM carteiro.delayed WHERE claims > 0 AND (:tenant IS NULL OR tenant = :tenant)
) AS q
CROSS JOIN LATERAL (SELECT n.created_at, n.no FROM carteiro.messages AS n WHERE n.no = q.message_no OFFSET 0) AS m
WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
ORDER BY m.created_at DESC, m.no DESC
LIMIT :limit;

-- name: walk_emails
-- E-mails of a tenant, newest first, after a given one: the whole key of the index
-- is compared and sorted by, so that no other index fits. :tenant; :since; :at, :no; :limit
SELECT created_at, no
FROM carteiro.messages
WHERE
    kind = 'email:send'
    AND (tenant, created_at, no) >= (:tenant, :since::bigint, 0)
    AND (tenant, created_at, no) < (:tenant, :at::bigint, :no::bigint)
ORDER BY tenant DESC, created_at DESC, no DESC
LIMIT :limit;

-- name: walk_external_id
-- Messages of tenants with their own id for them, newest first, after a given one: each tenant's by themselves, by the
-- whole key of the index, so that no other index fits. :tenants = [tenant, …]; :external_id; :since; :at, :no; :limit
SELECT m.created_at, m.no
FROM unnest(:tenants::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, no
    FROM carteiro.messages
    WHERE
        external_id IS NOT NULL
        AND (external_id, tenant, created_at, no) >= (:external_id, i.tenant, :since::bigint, 0)
        AND (external_id, tenant, created_at, no) < (:external_id, i.tenant, :at::bigint, :no::bigint)
    ORDER BY external_id DESC, tenant DESC, created_at DESC, no DESC
    LIMIT :limit
) AS m
ORDER BY m.created_at DESC, m.no DESC
LIMIT :limit;

-- name: walk_provider_id
-- Messages of tenants with an id that a provider gave, newest first, after a given one: each tenant's by themselves, by
-- the whole key of the index, so that no other index fits. :tenants = [tenant, …]; :provider_id; :since; :at, :no;
-- :limit
SELECT m.created_at, m.message_no
FROM unnest(:tenants::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, message_no
    FROM carteiro.entries
    WHERE
        provider_message_id <> ''
        AND (provider_message_id, tenant, created_at, message_no) >= (:provider_id, i.tenant, :since::bigint, 0)
        AND (provider_message_id, tenant, created_at, message_no) < (:provider_id, i.tenant, :at::bigint, :no::bigint)
    ORDER BY provider_message_id DESC, tenant DESC, created_at DESC, message_no DESC
    LIMIT :limit
) AS m
ORDER BY m.created_at DESC, m.message_no DESC
LIMIT :limit;

-- name: walk_recipient
-- Messages to recipients, newest first, after a given one: each recipient's by themselves, by the whole key of the
-- index. :recipients = [recipient, …]; :since; :at, :no; :limit
SELECT m.created_at, m.no
FROM unnest(:recipients::text[]) AS i (recipient)
CROSS JOIN LATERAL (
    SELECT created_at, no
    FROM carteiro.messages
    WHERE
        recipient_id IS NOT NULL
        AND (recipient_id, created_at, no) >= (i.recipient, :since::bigint, 0)
        AND (recipient_id, created_at, no) < (i.recipient, :at::bigint, :no::bigint)
    ORDER BY recipient_id DESC, created_at DESC, no DESC
    LIMIT :limit
) AS m
ORDER BY m.created_at DESC, m.no DESC
LIMIT :limit;

-- name: walk_sent
-- E-mails of a tenant that were sent, newest first, after a given one: the whole key of the index
-- is compared and sorted by, so that no other index fits. :tenant; :since; :at, :no; :limit
SELECT created_at, message_no
FROM carteiro.entries
WHERE
    provider_message_id IS NOT NULL AND is_email
    AND (tenant, created_at, message_no) >= (:tenant, :since::bigint, 0)
    AND (tenant, created_at, message_no) < (:tenant, :at::bigint, :no::bigint)
ORDER BY tenant DESC, created_at DESC, message_no DESC
LIMIT :limit;

-- name: walk_tag
-- Messages of tenants with a tag, newest first, after a given one: each tenant's by themselves, by the whole key of the
-- index. :tenants = [tenant, …]; :tag; :since; :at, :no; :limit
SELECT g.created_at, g.message_no
FROM unnest(:tenants::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, message_no
    FROM carteiro.message_tags
    WHERE
        (tenant, tag, created_at, message_no) >= (i.tenant, :tag, :since::bigint, 0)
        AND (tenant, tag, created_at, message_no) < (i.tenant, :tag, :at::bigint, :no::bigint)
    ORDER BY tenant DESC, tag DESC, created_at DESC, message_no DESC
    LIMIT :limit
) AS g
ORDER BY g.created_at DESC, g.message_no DESC
LIMIT :limit;

-- name: walk_tasks
-- Messages of a tenant that are not e-mails, newest first, after a given one: the whole key of the index
-- is compared and sorted by, so that no other index fits. :tenant; :since; :at, :no; :limit
SELECT created_at, no
FROM carteiro.messages
WHERE
    kind <> 'email:send'
    AND (tenant, created_at, no) >= (:tenant, :since::bigint, 0)
    AND (tenant, created_at, no) < (:tenant, :at::bigint, :no::bigint)
ORDER BY tenant DESC, created_at DESC, no DESC
LIMIT :limit;

-- name: walk_to
-- Messages of tenants to an address, newest first, after a given one: each tenant's by themselves, by the whole key of
-- the index, so that no other index fits. :tenants = [tenant, …]; :to; :since; :at, :no; :limit
SELECT m.created_at, m.no
FROM unnest(:tenants::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, no
    FROM carteiro.messages
    WHERE
        to_address IS NOT NULL
        AND (to_address, tenant, created_at, no) >= (:to, i.tenant, :since::bigint, 0)
        AND (to_address, tenant, created_at, no) < (:to, i.tenant, :at::bigint, :no::bigint)
    ORDER BY to_address DESC, tenant DESC, created_at DESC, no DESC
    LIMIT :limit
) AS m
ORDER BY m.created_at DESC, m.no DESC
LIMIT :limit;

-- name: walk_unfinished
-- Messages that have a job, newest first, after a given one. Reads every job: only for queues
-- that `unfinished` found to be short. :tenant, null matches all; :since; :at, :no; :limit
WITH seats AS MATERIALIZED (
    SELECT kind, tenant, lowest, due_from
    FROM carteiro.seats_and_notes
    WHERE :tenant::text IS NULL OR tenant = :tenant
)
SELECT m.created_at, m.no
FROM (
    SELECT r.message_no
    FROM seats AS s
    CROSS JOIN LATERAL (
        SELECT n.message_no FROM carteiro.ready AS n
        WHERE n.tenant = s.tenant AND n.kind = s.kind AND n.rank >= s.lowest
        OFFSET 0
    ) AS r
    UNION
    SELECT d.message_no
    FROM seats AS s
    CROSS JOIN LATERAL (
        SELECT n.message_no FROM carteiro.delayed AS n
        WHERE n.tenant = s.tenant AND n.kind = s.kind AND n.parked_until >= s.due_from
        OFFSET 0
    ) AS d
    UNION
    SELECT n FROM carteiro.leased AS l, unnest(l.numbers) AS n WHERE :tenant IS NULL OR l.tenant = :tenant
) AS q
CROSS JOIN LATERAL (SELECT n.created_at, n.no FROM carteiro.messages AS n WHERE n.no = q.message_no OFFSET 0) AS m
WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
ORDER BY m.created_at DESC, m.no DESC
LIMIT :limit;

-- name: walk_unfinished_messages
-- As `walk_unfinished`, for a separate queue: reads every unfinished message.
-- Only for ledgers where `unfinished_messages` found few. :since; :at, :no; :limit
SELECT m.created_at, m.no
FROM carteiro.unfinished AS u
CROSS JOIN LATERAL (SELECT n.created_at, n.no FROM carteiro.messages AS n WHERE n.no = u.message_no OFFSET 0) AS m
WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
ORDER BY m.created_at DESC, m.no DESC
LIMIT :limit;

-- name: walk_unlucky
-- Messages of a tenant that ended unsent or failed at least once, newest first, after a given one: the whole key of the
-- index is compared and sorted by, so that no other index fits. :tenant; :since; :at, :no; :limit
SELECT created_at, message_no
FROM carteiro.entries
WHERE
    provider_message_id IS NULL AND (finished_at IS NOT NULL OR failure IS NOT NULL)
    AND (tenant, created_at, message_no) >= (:tenant, :since::bigint, 0)
    AND (tenant, created_at, message_no) < (:tenant, :at::bigint, :no::bigint)
ORDER BY tenant DESC, created_at DESC, message_no DESC
LIMIT :limit;
