-- name: erase_alone
-- Holds a tenant, so that nothing can be added to it, unless somebody adds to it right now. $1 tenant
SELECT true FROM carteiro.tenants
WHERE id = $1::text
FOR UPDATE SKIP LOCKED;

-- name: erase_beside
-- Drops the dead letters and the idempotency keys of messages. $1 message ids
WITH letters AS (DELETE FROM carteiro.dead_letters WHERE message_id = ANY ($1::text[]))
DELETE FROM carteiro.idempotency_keys
WHERE message_id = ANY ($1::text[]);

-- name: erase_ended
-- Finished messages to a recipient: those that name it, and those to its address that name nobody.
-- $1 recipient; $2 tenant; $3 email; $4 limit
(
    SELECT m.no, m.id FROM carteiro.messages AS m
    WHERE
        m.recipient_id = $1::text AND m.tenant = $2::text
        AND (SELECT e.finished_at IS NOT NULL FROM carteiro.entries AS e WHERE e.message_no = m.no)
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
UNION ALL
(
    SELECT m.no, m.id FROM carteiro.messages AS m
    WHERE
        m.to_address = $3::text AND m.tenant = $2::text AND m.recipient_id IS NULL
        AND (SELECT e.finished_at IS NOT NULL FROM carteiro.entries AS e WHERE e.message_no = m.no)
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
LIMIT $4::bigint;

-- name: erase_entries
-- Drops what became of messages: their numbers, due times and whether they have a job. $1 message numbers
DELETE FROM carteiro.entries
WHERE message_no = ANY ($1::bigint[])
RETURNING message_no, due_at, finished_at IS NULL;

-- name: erase_find
-- The next messages of a tenant that are not in flight, e-mails first. $1 tenant; $2 now; $3 longest hold; $4 limit
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind = 'email:send'
        AND (
            SELECT l.parked_until > $2::bigint AND l.parked_until <= $2::bigint + $3::bigint
            FROM carteiro.leased AS l
            WHERE l.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
UNION ALL
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind <> 'email:send'
        AND (
            SELECT l.parked_until > $2::bigint AND l.parked_until <= $2::bigint + $3::bigint
            FROM carteiro.leased AS l
            WHERE l.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
LIMIT $4::bigint;

-- name: erase_find_messages
-- As `erase_find`, where jobs are kept elsewhere: past what is being attempted, and what is busy there.
-- $1 tenant; $2 now; $3 longest hold; $4 limit; $5 busy ids
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind = 'email:send' AND m.id <> ALL ($5::text[])
        AND (
            SELECT e.state = 'SENT_ATTEMPT' AND e.held_until > $2::bigint AND e.held_until <= $2::bigint + $3::bigint
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
UNION ALL
(
    SELECT m.no, m.id, m.kind, m.priority
    FROM carteiro.messages AS m
    WHERE
        m.tenant = $1::text AND m.kind <> 'email:send' AND m.id <> ALL ($5::text[])
        AND (
            SELECT e.state = 'SENT_ATTEMPT' AND e.held_until > $2::bigint AND e.held_until <= $2::bigint + $3::bigint
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        ) IS NOT TRUE
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
LIMIT $4::bigint;

-- name: erase_jobs
-- Drops jobs of a tenant, wherever they lie, and notes how many fewer it has. The caller holds the lock of the ring.
-- $1 tenant; $2 far: nobody need look; arrays, of each message: $3 number; $4 id; $5 kind; $6 priority; $7 due time;
-- $8 1 if it has a job, 0 if not
WITH delayed AS (DELETE FROM carteiro.delayed WHERE message_no = ANY ($3::bigint[])),
leased AS (DELETE FROM carteiro.leased WHERE message_no = ANY ($3::bigint[])),
ready AS (
    DELETE FROM carteiro.ready
    WHERE ctid = ANY (ARRAY(
        SELECT r.ctid
        FROM unnest($4::text[], $5::text[], $6::integer[], $7::bigint[]) AS j (id, kind, priority, due_at)
        CROSS JOIN LATERAL (
            SELECT w.ctid FROM carteiro.ready AS w
            WHERE
                w.tenant = $1::text AND w.kind = j.kind AND w.rank = carteiro.rank(j.priority, j.due_at)
                AND w.id = j.id
            LIMIT 1
        ) AS r
    ))
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
SELECT j.kind, $1::text, -sum(j.jobs), $2::bigint
FROM unnest($5::text[], $8::integer[]) AS j (kind, jobs)
GROUP BY j.kind;

-- name: erase_left
-- Whether any message to a recipient is left. $1 recipient; $2 tenant; $3 email
SELECT
    EXISTS (SELECT FROM carteiro.messages WHERE recipient_id = $1::text AND tenant = $2::text)
    OR EXISTS (
        SELECT FROM carteiro.messages
        WHERE to_address = $3::text AND tenant = $2::text AND recipient_id IS NULL
    );

-- name: erase_messages
-- Leaves of messages their ids, states and times. $1 message numbers
WITH blanked AS (
    UPDATE carteiro.entries
    SET version = version + 1, evidence = NULL,
        provider_message_id = CASE WHEN provider_message_id IS NOT NULL THEN '' END,
        failure = (carteiro.readable(failure::text)::jsonb || '{"reason": "", "original_code": null}')::json
    WHERE message_no = ANY ($1::bigint[])
)
UPDATE carteiro.messages
SET request_id = '', external_id = NULL, recipient_id = NULL, to_address = NULL, subject = NULL, tags = NULL
WHERE no = ANY ($1::bigint[]);

-- name: erase_people
-- Drops recipients of a tenant, and idempotency keys, mails and suppressions of it; how many recipients.
-- $1 tenant; $2 limit of recipients; $3 limit of each of the others
WITH keys AS (
    DELETE FROM carteiro.idempotency_keys
    WHERE
        tenant = $1::text
        AND key = ANY (ARRAY(
            SELECT k.key FROM carteiro.idempotency_keys AS k WHERE k.tenant = $1::text LIMIT $3::bigint
        ))
),
mails AS (
    DELETE FROM carteiro.inbox
    WHERE id = ANY (ARRAY(
        SELECT i.id FROM carteiro.inbox AS i WHERE i.tenant = $1::text LIMIT $3::bigint
    ))
),
suppressed AS (
    DELETE FROM carteiro.suppressions
    WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM carteiro.suppressions AS s WHERE s.tenant = $1::text LIMIT $3::bigint
    ))
),
people AS (
    DELETE FROM carteiro.recipient_records
    WHERE id = ANY (ARRAY(
        SELECT r.id FROM carteiro.recipient_records AS r WHERE r.tenant = $1::text LIMIT $2::bigint
    ))
    RETURNING id
)
SELECT count(*) FROM people;

-- name: erase_rest
-- Whether messages, and whether recipients, idempotency keys, mails or suppressions of a tenant are left. $1 tenant
SELECT
    EXISTS (SELECT FROM carteiro.messages WHERE tenant = $1::text AND kind = 'email:send')
    OR EXISTS (SELECT FROM carteiro.messages WHERE tenant = $1::text AND kind <> 'email:send'),
    EXISTS (SELECT FROM carteiro.recipient_records WHERE tenant = $1::text)
    OR EXISTS (SELECT FROM carteiro.idempotency_keys WHERE tenant = $1::text)
    OR EXISTS (SELECT FROM carteiro.inbox WHERE tenant = $1::text)
    OR EXISTS (SELECT FROM carteiro.suppressions WHERE tenant = $1::text);

-- name: erase_tenant
-- Drops a tenant and the last that is its own. The caller holds it, and the lock of the ring. $1 tenant
WITH letters AS (DELETE FROM carteiro.dead_letters WHERE tenant = $1::text),
tags AS (DELETE FROM carteiro.message_tags WHERE tenant = $1::text),
templates AS (DELETE FROM carteiro.templates WHERE tenant = $1::text),
domains AS (DELETE FROM carteiro.sender_domains WHERE tenant = $1::text),
keys AS (DELETE FROM carteiro.access_keys WHERE tenant = $1::text),
counts AS (DELETE FROM carteiro.api_counts WHERE tenant = $1::text),
ready AS (DELETE FROM carteiro.ready WHERE tenant = $1::text),
delayed AS (DELETE FROM carteiro.delayed WHERE tenant = $1::text),
leased AS (DELETE FROM carteiro.leased WHERE tenant = $1::text),
seats AS (DELETE FROM carteiro.seats WHERE tenant = $1::text),
notes AS (DELETE FROM carteiro.notes WHERE tenant = $1::text)
DELETE FROM carteiro.tenants
WHERE id = $1::text;

-- name: erase_waiting
-- Unfinished messages to a recipient (those that name it, and those to its address that name nobody) that nobody asked
-- to cancel. $1 recipient; $2 tenant; $3 email; $4 limit
(
    SELECT m.id FROM carteiro.messages AS m
    WHERE
        m.recipient_id = $1::text AND m.tenant = $2::text
        AND (
            SELECT e.finished_at IS NULL AND e.cancel_requested_at IS NULL
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        )
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
UNION ALL
(
    SELECT m.id FROM carteiro.messages AS m
    WHERE
        m.to_address = $3::text AND m.tenant = $2::text AND m.recipient_id IS NULL
        AND (
            SELECT e.finished_at IS NULL AND e.cancel_requested_at IS NULL
            FROM carteiro.entries AS e
            WHERE e.message_no = m.no
        )
    ORDER BY m.created_at, m.no
    LIMIT $4::bigint
)
LIMIT $4::bigint;

-- name: erase_words
-- Drops what was written to somebody: contents, tags, the sandbox's mails, and of events all but their types and times.
-- $1 message numbers; $2 their ids
WITH tags AS (DELETE FROM carteiro.message_tags WHERE message_no = ANY ($1::bigint[])),
mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY ($2::text[])),
words AS (DELETE FROM carteiro.contents WHERE message_no = ANY ($1::bigint[]))
UPDATE carteiro.events
SET metadata = '{}'
WHERE message_no = ANY ($1::bigint[]);

-- name: forget_messages
-- Drops messages and all that is kept beside them, but dead letters and idempotency keys.
-- $1 message numbers; $2 their ids; $3 whether events are left that are soon dropped with their whole part
WITH tags AS (DELETE FROM carteiro.message_tags WHERE message_no = ANY ($1::bigint[])),
mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY ($2::text[])),
words AS (DELETE FROM carteiro.contents WHERE message_no = ANY ($1::bigint[])),
timelines AS (
    DELETE FROM carteiro.events
    WHERE message_no = ANY (ARRAY(
        SELECT n.no FROM unnest($1::bigint[]) AS n (no)
        WHERE NOT $3::boolean OR NOT EXISTS (
            SELECT FROM carteiro.event_parts AS p
            WHERE p.from_no <= n.no AND n.no < p.to_no AND carteiro.is_dropped_whole(p)
        )
    ))
),
gone AS (DELETE FROM carteiro.entries WHERE message_no = ANY ($1::bigint[]))
DELETE FROM carteiro.messages
WHERE no = ANY ($1::bigint[]);
