-- name: erase_alone
-- Locks a tenant, so that nothing can be added to it, unless another transaction is adding to it. :tenant
SELECT true FROM carteiro.tenants
WHERE id = :tenant::text
FOR UPDATE SKIP LOCKED;

-- name: erase_beside
-- Deletes the dead letters and the idempotency keys of messages. :ids = [message id, …]
WITH letters AS (DELETE FROM carteiro.dead_letters WHERE message_id = ANY (:ids::text[]))
DELETE FROM carteiro.idempotency_keys
WHERE message_id = ANY (:ids::text[]);

-- name: erase_ended
-- Finished messages to a recipient: those that name it, and those to its address that name nobody. :recipient; :tenant;
-- :email; :limit
(
    SELECT m.no, m.id FROM carteiro.messages AS m
    WHERE
        m.recipient_id = :recipient::text AND m.tenant = :tenant::text
        AND (SELECT e.finished_at IS NOT NULL FROM carteiro.entries AS e WHERE e.message_no = m.no)
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
UNION ALL
(
    SELECT m.no, m.id FROM carteiro.messages AS m
    WHERE
        m.to_address = :email::text AND m.tenant = :tenant::text AND m.recipient_id IS NULL
        AND (SELECT e.finished_at IS NOT NULL FROM carteiro.entries AS e WHERE e.message_no = m.no)
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
LIMIT :limit::bigint;

-- name: erase_entries
-- Ends unfinished messages; returns the numbers of all, their due times and whether they had a job. A change that is made
-- meanwhile is waited for, and a later one finds the end. :numbers = [number, …]; :now
WITH ended AS (
    INSERT INTO carteiro.entries (
        message_no, version, state, due_at, expires_at, finished_at, tenant, is_email, created_at
    )
    SELECT m.no, 2, 'CANCELLED', m.due_at, m.due_at + m.ttl_ms, :now::bigint, m.tenant, m.kind = 'email:send', m.created_at
    FROM unnest(:numbers::bigint[]) AS i (no)
    CROSS JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.no = i.no OFFSET 0) AS m
    ON CONFLICT (message_no) DO UPDATE
    SET version = entries.version + 1, state = excluded.state, finished_at = excluded.finished_at
    WHERE entries.finished_at IS NULL
    RETURNING message_no, due_at
)
SELECT i.no, coalesce(d.due_at, e.due_at), d.message_no IS NOT NULL
FROM unnest(:numbers::bigint[]) AS i (no)
LEFT JOIN ended AS d ON d.message_no = i.no
LEFT JOIN LATERAL (SELECT n.due_at FROM carteiro.entries AS n WHERE n.message_no = i.no OFFSET 0) AS e ON true;

-- name: erase_find
-- The next messages of a tenant that are not in flight, e-mails first. :tenant; :now; :longest; :limit
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = :tenant::text AND m.kind = 'email:send'
        AND (
            SELECT l.parked_until > :now::bigint AND l.parked_until <= :now::bigint + :longest::bigint
            FROM carteiro.lease_of(m.no, m.tenant, m.kind) AS l
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
UNION ALL
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = :tenant::text AND m.kind <> 'email:send'
        AND (
            SELECT l.parked_until > :now::bigint AND l.parked_until <= :now::bigint + :longest::bigint
            FROM carteiro.lease_of(m.no, m.tenant, m.kind) AS l
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
LIMIT :limit::bigint;

-- name: erase_find_messages
-- As `erase_find`, for a separate queue: without messages in an attempt, and without those that are busy there. :tenant; :now;
-- :longest; :limit; :busy = [id, …]
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = :tenant::text AND m.kind = 'email:send' AND m.id <> ALL (:busy::text[])
        AND (
            SELECT e.state = 'SENT_ATTEMPT' AND e.held_until > :now::bigint AND e.held_until <= :now::bigint + :longest::bigint
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
UNION ALL
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = :tenant::text AND m.kind <> 'email:send' AND m.id <> ALL (:busy::text[])
        AND (
            SELECT e.state = 'SENT_ATTEMPT' AND e.held_until > :now::bigint AND e.held_until <= :now::bigint + :longest::bigint
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
LIMIT :limit::bigint;

-- name: erase_jobs
-- Deletes jobs of a tenant from every table, and leaves a note of their number. The caller holds the lock of the ring.
-- :tenant; :far = an alarm that never rings; :rows = [[number, id, kind, priority, due_at, 1 if it has a job], …]
WITH ended AS (
    DELETE FROM carteiro.unfinished AS u
    USING unnest(:rows_0::bigint[]) AS i (no), carteiro.entries AS e
    WHERE e.message_no = i.no AND u.expires_at = e.expires_at AND u.message_no = e.message_no
),
delayed AS (DELETE FROM carteiro.delayed WHERE message_no = ANY (:rows_0::bigint[])),
leased AS (
    SELECT carteiro.take_leases(array_agg(n), array_agg(l.claim_id), array_agg(l.tenant), array_agg(l.kind))
    FROM carteiro.leased AS l, unnest(l.numbers) AS n
    WHERE l.tenant = :tenant::text AND n = ANY (:rows_0::bigint[])
),
ready AS (
    DELETE FROM carteiro.ready
    WHERE ctid = ANY (ARRAY(
        SELECT r.ctid
        FROM unnest(:rows_1::text[], :rows_2::text[], :rows_3::integer[], :rows_4::bigint[]) AS j (id, kind, priority, due_at)
        CROSS JOIN LATERAL (
            SELECT w.ctid FROM carteiro.ready AS w
            WHERE
                w.tenant = :tenant::text AND w.kind = j.kind AND w.rank = carteiro.rank(j.priority, j.due_at)
                AND w.id = j.id
            LIMIT 1
        ) AS r
    ))
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
SELECT j.kind, :tenant::text, -sum(j.jobs), :far::bigint
FROM unnest(:rows_2::text[], :rows_5::integer[]) AS j (kind, jobs), (SELECT count(*) FROM leased) AS taken
GROUP BY j.kind;

-- name: erase_left
-- True if any message to a recipient is left. :recipient; :tenant; :email
SELECT
    EXISTS (SELECT FROM carteiro.messages WHERE recipient_id = :recipient::text AND tenant = :tenant::text)
    OR EXISTS (
        SELECT FROM carteiro.messages
        WHERE to_address = :email::text AND tenant = :tenant::text AND recipient_id IS NULL
    );

-- name: erase_messages
-- Blanks messages: only their ids, states and times stay. :numbers = [number, …]
WITH blanked AS (
    UPDATE carteiro.entries
    SET version = version + 1, evidence = NULL,
        provider_message_id = CASE WHEN provider_message_id IS NOT NULL THEN '' END,
        failure = (carteiro.readable(failure::text)::jsonb || '{"reason": "", "original_code": null}')::json
    WHERE message_no = ANY (:numbers::bigint[])
)
UPDATE carteiro.messages
SET request_id = '', external_id = NULL, recipient_id = NULL, to_address = NULL, subject = NULL, tags = NULL,
    content = NULL
WHERE no = ANY (:numbers::bigint[]);

-- name: erase_people
-- Deletes recipients of a tenant, and its idempotency keys, mails and suppressions. :tenant; :most
-- = maximum of recipients; :limit = maximum of each of the others
WITH keys AS (
    DELETE FROM carteiro.idempotency_keys
    WHERE
        tenant = :tenant::text
        AND key = ANY (ARRAY(
            SELECT k.key FROM carteiro.idempotency_keys AS k WHERE k.tenant = :tenant::text LIMIT :limit::bigint
        ))
),
mails AS (
    DELETE FROM carteiro.inbox
    WHERE id = ANY (ARRAY(
        SELECT i.id FROM carteiro.inbox AS i WHERE i.tenant = :tenant::text LIMIT :limit::bigint
    ))
),
suppressed AS (
    DELETE FROM carteiro.suppressions
    WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM carteiro.suppressions AS s WHERE s.tenant = :tenant::text LIMIT :limit::bigint
    ))
)
DELETE FROM carteiro.recipient_records
WHERE id = ANY (ARRAY(
    SELECT r.id FROM carteiro.recipient_records AS r WHERE r.tenant = :tenant::text LIMIT :most::bigint
));

-- name: erase_rest
-- Two booleans: messages of a tenant are left; recipients, idempotency keys, mails or suppressions are left. :tenant
SELECT
    EXISTS (SELECT FROM carteiro.messages WHERE tenant = :tenant::text AND kind = 'email:send')
    OR EXISTS (SELECT FROM carteiro.messages WHERE tenant = :tenant::text AND kind <> 'email:send'),
    EXISTS (SELECT FROM carteiro.recipient_records WHERE tenant = :tenant::text)
    OR EXISTS (SELECT FROM carteiro.idempotency_keys WHERE tenant = :tenant::text)
    OR EXISTS (SELECT FROM carteiro.inbox WHERE tenant = :tenant::text)
    OR EXISTS (SELECT FROM carteiro.suppressions WHERE tenant = :tenant::text);

-- name: erase_tenant
-- Deletes a tenant and its last rows. The caller holds it, and the lock of the ring. :tenant
WITH letters AS (DELETE FROM carteiro.dead_letters WHERE tenant = :tenant::text),
items AS (
    DELETE FROM carteiro.redrive_items
    WHERE redrive IN (SELECT id FROM carteiro.redrives WHERE tenant = :tenant::text)
),
redrives AS (DELETE FROM carteiro.redrives WHERE tenant = :tenant::text),
tags AS (DELETE FROM carteiro.message_tags WHERE tenant = :tenant::text),
templates AS (DELETE FROM carteiro.templates WHERE tenant = :tenant::text),
domains AS (DELETE FROM carteiro.sender_domains WHERE tenant = :tenant::text),
keys AS (DELETE FROM carteiro.access_keys WHERE tenant = :tenant::text),
counts AS (DELETE FROM carteiro.api_counts WHERE tenant = :tenant::text),
failures AS (DELETE FROM carteiro.failure_counts WHERE tenant = :tenant::text),
rollups AS (DELETE FROM carteiro.rollups WHERE span IN ('minute', 'hour') AND tenant = :tenant::text),
ready AS (DELETE FROM carteiro.ready WHERE tenant = :tenant::text),
delayed AS (DELETE FROM carteiro.delayed WHERE tenant = :tenant::text),
leased AS (DELETE FROM carteiro.leased WHERE tenant = :tenant::text),
seats AS (DELETE FROM carteiro.seats WHERE tenant = :tenant::text),
notes AS (DELETE FROM carteiro.notes WHERE tenant = :tenant::text),
tallies AS (DELETE FROM carteiro.tallies WHERE tenant = :tenant::text)
DELETE FROM carteiro.tenants
WHERE id = :tenant::text;

-- name: erase_waiting
-- Unfinished messages to a recipient (those that name it, and those to its address that name nobody) without a
-- requested cancel. :recipient; :tenant; :email; :limit
(
    SELECT m.id FROM carteiro.messages AS m
    WHERE
        m.recipient_id = :recipient::text AND m.tenant = :tenant::text
        AND (
            SELECT e.finished_at IS NULL AND e.cancel_requested_at IS NULL
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT FALSE
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
UNION ALL
(
    SELECT m.id FROM carteiro.messages AS m
    WHERE
        m.to_address = :email::text AND m.tenant = :tenant::text AND m.recipient_id IS NULL
        AND (
            SELECT e.finished_at IS NULL AND e.cancel_requested_at IS NULL
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT FALSE
    ORDER BY m.created_at, m.no
    LIMIT :limit::bigint
)
LIMIT :limit::bigint;

-- name: erase_words
-- Deletes personal data of messages outside their rows: tags, the sandbox's mails, and of events all but their types and times.
-- :numbers = [number, …]; :ids = [message id, …]
WITH tags AS (DELETE FROM carteiro.message_tags WHERE message_no = ANY (:numbers::bigint[])),
mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY (:ids::text[])),
timelines AS (
    UPDATE carteiro.entries AS e
    SET timeline = (
        SELECT coalesce(string_agg(format('["%s",%s,{}],', v.type, v.created_at), '' ORDER BY v.place), '')
        FROM carteiro.told(e.timeline) AS v
    )
    WHERE e.message_no = ANY (:numbers::bigint[])
)
UPDATE carteiro.events
SET metadata = '{}'
WHERE message_no = ANY (:numbers::bigint[]);

-- name: forget_messages
-- Deletes messages and their rows, except dead letters and idempotency keys. :numbers = [number, …]; :ids
-- = [message id, …]
WITH tags AS (DELETE FROM carteiro.message_tags WHERE message_no = ANY (:numbers::bigint[])),
mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY (:ids::text[])),
timelines AS (DELETE FROM carteiro.events WHERE message_no = ANY (:numbers::bigint[])),
redriven AS ( -- since its job was taken
    DELETE FROM carteiro.unfinished AS u
    USING unnest(:numbers::bigint[]) AS i (no), carteiro.entries AS e
    WHERE e.message_no = i.no AND u.expires_at = e.expires_at AND u.message_no = e.message_no
),
gone AS (DELETE FROM carteiro.entries WHERE message_no = ANY (:numbers::bigint[]))
DELETE FROM carteiro.messages
WHERE no = ANY (:numbers::bigint[]);
