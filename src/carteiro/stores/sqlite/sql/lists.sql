-- name: cursor_id
-- The id of a message. :no
SELECT id FROM messages WHERE no = :no;

-- name: cursor_place
-- The number after which a page starts: of the cursor's message or, if it was deleted, of the next by id at its time.
-- :at; :id; :tenant, null matches all
SELECT coalesce(
    (SELECT no FROM messages WHERE id = :id AND created_at = :at AND (:tenant IS NULL OR tenant = :tenant)),
    (
        SELECT 1 + max(no)
        FROM (
            SELECT no, id FROM messages INDEXED BY emails_of_tenant
            WHERE tenant = :tenant AND kind = 'email:send' AND created_at = :at
            UNION ALL
            SELECT no, id FROM messages INDEXED BY tasks_of_tenant
            WHERE tenant = :tenant AND kind <> 'email:send' AND created_at = :at
            UNION ALL
            SELECT no, id FROM messages INDEXED BY messages_by_age
            WHERE :tenant IS NULL AND created_at = :at
        )
        WHERE id < :id
    ),
    0
);

-- name: external_id_tenants
-- The tenants with messages of this external id: skips from tenant to tenant in the index.
-- :external_id
WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM messages INDEXED BY messages_by_external_id WHERE external_id = :external_id
    UNION ALL
    SELECT (
        SELECT min(m.tenant) FROM messages AS m INDEXED BY messages_by_external_id
        WHERE m.external_id = :external_id AND m.tenant > f.tenant
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;

-- name: place
-- The place of a message's job, the standing of its tenant, the send limit of its kind, and the jobs before it: ready
-- ones and parked ones, each at most :most, and the first time of any. :id; :now; :longest
SELECT
    coalesce(l.until, d.until), l.claim IS NOT NULL, coalesce(l.claims, d.claims, r.claims, 0), s.wake_at,
    (
        SELECT count(*) FROM seats AS o CROSS JOIN leased AS f ON f.seat = o.no
        WHERE o.tenant = m.tenant AND f.until > :now AND f.until <= :now + :longest
    ),
    c.limit_count, c.limit_per_ms, c.draws,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM ready AS a
            WHERE a.seat = s.no AND (a.priority, a.due_at, a.id) < (m.priority, m.due_at, coalesce(r.id, ''))
            LIMIT :most
        )
    ),
    (
        SELECT count(*) FROM (
            SELECT 1 FROM delayed AS a
            WHERE a.seat = s.no AND (a.until, a.id) < (coalesce(d.until, m.due_at), coalesce(d.id, ''))
            LIMIT :most
        )
    ),
    (
        SELECT min(since) FROM (
            SELECT min(due_at) AS since FROM (
                SELECT a.due_at FROM ready AS a
                WHERE a.seat = s.no AND (a.priority, a.due_at, a.id) < (m.priority, m.due_at, coalesce(r.id, ''))
                LIMIT :most
            )
            UNION ALL
            SELECT min(a.until) FROM delayed AS a WHERE a.seat = s.no
            UNION ALL
            SELECT r.due_at
        )
    )
FROM ledger AS m
LEFT JOIN seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
LEFT JOIN leased AS l ON l.seat = s.no AND l.message_no = m.no
LEFT JOIN delayed AS d ON d.message_no = m.no
LEFT JOIN ready AS r ON r.seat = s.no AND r.priority = m.priority AND r.due_at = m.due_at AND r.id = m.id
LEFT JOIN ring_clock AS c ON c.kind = m.kind
WHERE m.id = :id AND m.finished_at IS NULL;

-- name: provider_id_tenants
-- The tenants with messages of this provider's id: skips from tenant to tenant in the index.
-- :provider_id
WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM entries INDEXED BY entries_by_provider_id WHERE provider_message_id = :provider_id AND provider_message_id <> ''
    UNION ALL
    SELECT (
        SELECT min(m.tenant) FROM entries AS m INDEXED BY entries_by_provider_id
        WHERE m.provider_message_id = :provider_id AND m.provider_message_id <> '' AND m.tenant > f.tenant
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;

-- name: tag_tenants
-- The tenants that have messages with a tag. :tag
SELECT t.id FROM tenants AS t
WHERE EXISTS (SELECT 1 FROM message_tags AS g WHERE g.tenant = t.id AND g.tag = :tag);

-- name: to_tenants
-- The tenants with messages to an address: skips from tenant to tenant in the index. :to
WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM messages INDEXED BY messages_to WHERE to_address = :to
    UNION ALL
    SELECT (
        SELECT min(m.tenant) FROM messages AS m INDEXED BY messages_to
        WHERE m.to_address = :to AND m.tenant > f.tenant
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;

-- name: unfinished
-- The number of jobs. :tenant, null matches all
SELECT coalesce(sum(jobs), 0)
FROM (
    SELECT jobs FROM seats WHERE tenant = :tenant
    UNION ALL
    SELECT jobs FROM seats WHERE :tenant IS NULL
);

-- name: unfinished_messages
-- The number of unfinished messages, counted up to :most.
SELECT count(*)
FROM (SELECT 1 FROM unfinished LIMIT :most);

-- name: walk_all
-- All messages, newest first, after a given one: one JSON list of [created_at, number].
-- :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY messages_by_age
    WHERE created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);

-- name: walk_attempts
-- Messages that may have an open attempt, as their job is or was claimed, newest first, after a given one:
-- one JSON list of [created_at, number]. :tenant, null matches all; :since; :at, :no; :limit
WITH wanted (no) AS MATERIALIZED (
    SELECT no FROM seats WHERE tenant = :tenant
    UNION ALL
    SELECT no FROM seats WHERE :tenant IS NULL
)
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT m.created_at, m.no
    FROM (
        SELECT r.message_no
        FROM wanted AS s CROSS JOIN ready AS r INDEXED BY ready_again ON r.seat = s.no AND r.claims > 0
        UNION ALL
        SELECT d.message_no
        FROM wanted AS s CROSS JOIN delayed AS d INDEXED BY delayed_again ON d.seat = s.no AND d.claims > 0
        UNION ALL
        SELECT l.message_no FROM wanted AS s CROSS JOIN leased AS l ON l.seat = s.no
    ) AS q CROSS JOIN messages AS m ON m.no = q.message_no
    WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
    ORDER BY m.created_at DESC, m.no DESC
    LIMIT :limit
);

-- name: walk_emails
-- E-mails of a tenant, newest first, after a given one: one JSON list of [created_at, number].
-- :tenant; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send' AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);

-- name: walk_external_id
-- Messages of a tenant with its own id for them, newest first, after a given one: for each of the tenants one JSON list
-- of [created_at, number]. :tenants = [tenant, …]; :external_id; :since; :at, :no; :limit
SELECT (
    SELECT json_group_array(json_array(created_at, no))
    FROM (
        SELECT created_at, no FROM messages INDEXED BY messages_by_external_id
        WHERE
            external_id = :external_id AND tenant = i.value
            AND created_at >= :since AND (created_at, no) < (:at, :no)
        ORDER BY created_at DESC, no DESC
        LIMIT :limit
    )
)
FROM json_each(:tenants) AS i;

-- name: walk_provider_id
-- Messages of a tenant with an id that a provider gave, newest first, after a given one: for each of the tenants one
-- JSON list of [created_at, number]. :tenants = [tenant, …]; :provider_id; :since; :at, :no; :limit
SELECT (
    SELECT json_group_array(json_array(created_at, message_no))
    FROM (
        SELECT created_at, message_no FROM entries INDEXED BY entries_by_provider_id
        WHERE
            provider_message_id = :provider_id AND provider_message_id <> '' AND tenant = i.value
            AND created_at >= :since AND (created_at, message_no) < (:at, :no)
        ORDER BY created_at DESC, message_no DESC
        LIMIT :limit
    )
)
FROM json_each(:tenants) AS i;

-- name: walk_recipient
-- Messages to a recipient, newest first, after a given one: for each of the recipients one JSON list of [created_at,
-- number]. :recipients = [recipient, …]; :since; :at, :no; :limit
SELECT (
    SELECT json_group_array(json_array(created_at, no))
    FROM (
        SELECT created_at, no FROM messages INDEXED BY messages_of_recipient
        WHERE recipient_id = i.value AND created_at >= :since AND (created_at, no) < (:at, :no)
        ORDER BY created_at DESC, no DESC
        LIMIT :limit
    )
)
FROM json_each(:recipients) AS i;

-- name: walk_sent
-- E-mails of a tenant that were sent, newest first, after a given one: one JSON list of [created_at, number].
-- :tenant; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, message_no))
FROM (
    SELECT created_at, message_no FROM entries INDEXED BY entries_sent
    WHERE
        tenant = :tenant AND provider_message_id IS NOT NULL AND is_email
        AND created_at >= :since AND (created_at, message_no) < (:at, :no)
    ORDER BY created_at DESC, message_no DESC
    LIMIT :limit
);

-- name: walk_tag
-- Messages of a tenant with a tag, newest first, after a given one: for each of the tenants one JSON list of
-- [created_at, number]. :tenants = [tenant, …]; :tag; :since; :at, :no; :limit
SELECT (
    SELECT json_group_array(json_array(created_at, message_no))
    FROM (
        SELECT created_at, message_no FROM message_tags
        WHERE
            tenant = i.value AND tag = :tag AND created_at >= :since
            AND (created_at, message_no) < (:at, :no)
        ORDER BY created_at DESC, message_no DESC
        LIMIT :limit
    )
)
FROM json_each(:tenants) AS i;

-- name: walk_tasks
-- Messages of a tenant that are not e-mails, newest first, after a given one: one JSON list of [created_at, number].
-- :tenant; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send' AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);

-- name: walk_to
-- Messages of a tenant to an address, newest first, after a given one: for each of the tenants one JSON list of
-- [created_at, number]. :tenants = [tenant, …]; :to; :since; :at, :no; :limit
SELECT (
    SELECT json_group_array(json_array(created_at, no))
    FROM (
        SELECT created_at, no FROM messages INDEXED BY messages_to
        WHERE
            to_address = :to AND tenant = i.value
            AND created_at >= :since AND (created_at, no) < (:at, :no)
        ORDER BY created_at DESC, no DESC
        LIMIT :limit
    )
)
FROM json_each(:tenants) AS i;

-- name: walk_unfinished
-- Messages that have a job, newest first, after a given one: one JSON list of [created_at, number]. Reads every job:
-- only for queues that `unfinished` found to be short. :tenant, null matches all; :since; :at, :no; :limit
WITH wanted (no) AS MATERIALIZED (
    SELECT no FROM seats WHERE tenant = :tenant
    UNION ALL
    SELECT no FROM seats WHERE :tenant IS NULL
)
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT m.created_at, m.no
    FROM (
        SELECT r.message_no FROM wanted AS s CROSS JOIN ready AS r ON r.seat = s.no
        UNION ALL
        SELECT d.message_no FROM wanted AS s CROSS JOIN delayed AS d ON d.seat = s.no
        UNION ALL
        SELECT l.message_no FROM wanted AS s CROSS JOIN leased AS l ON l.seat = s.no
    ) AS q CROSS JOIN messages AS m ON m.no = q.message_no
    WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
    ORDER BY m.created_at DESC, m.no DESC
    LIMIT :limit
);

-- name: walk_unfinished_messages
-- As `walk_unfinished`, for a separate queue: reads every unfinished message.
-- Only for ledgers where `unfinished_messages` found few. :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT m.created_at, m.no
    FROM unfinished AS u CROSS JOIN messages AS m ON m.no = u.message_no
    WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
    ORDER BY m.created_at DESC, m.no DESC
    LIMIT :limit
);

-- name: walk_unlucky
-- Messages of a tenant that ended unsent or failed at least once, newest first, after a given one: one JSON list of
-- [created_at, number]. :tenant; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, message_no))
FROM (
    SELECT created_at, message_no FROM entries INDEXED BY entries_unlucky
    WHERE
        tenant = :tenant AND provider_message_id IS NULL AND (finished_at IS NOT NULL OR failure IS NOT NULL)
        AND created_at >= :since AND (created_at, message_no) < (:at, :no)
    ORDER BY created_at DESC, message_no DESC
    LIMIT :limit
);
