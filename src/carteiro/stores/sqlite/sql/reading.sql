-- name: depths
-- Queue depth, by kind: jobs, those in flight, and the time since which the oldest one is claimable.
-- Reads seat by seat and priority by priority, without the backlog between them. :now; :longest
WITH RECURSIVE heads (kind, tenant, priority) AS (
    SELECT s.kind, s.tenant, (SELECT min(r.priority) FROM ready AS r WHERE r.tenant = s.tenant AND r.kind = s.kind)
    FROM seats AS s
    WHERE s.jobs > 0
    UNION ALL
    SELECT h.kind, h.tenant, (
        SELECT min(r.priority) FROM ready AS r
        WHERE r.tenant = h.tenant AND r.kind = h.kind AND r.priority > h.priority
    )
    FROM heads AS h
    WHERE h.priority IS NOT NULL
),
parts (kind, jobs, in_flight, since) AS (
    SELECT s.kind, s.jobs, (
        SELECT count(*) FROM parked AS p
        WHERE
            p.tenant = s.tenant AND p.is_claimed = 1 AND p.kind = s.kind
            AND p.parked_until > :now AND p.parked_until <= :now + :longest
    ), NULL
    FROM seats AS s
    UNION ALL
    SELECT h.kind, 0, 0, (
        SELECT min(r.due_at) FROM ready AS r
        WHERE r.tenant = h.tenant AND r.kind = h.kind AND r.priority = h.priority
    )
    FROM heads AS h
    UNION ALL
    SELECT s.kind, 0, 0, (
        SELECT min(p.parked_until) FROM parked AS p
        WHERE p.tenant = s.tenant AND p.is_claimed = c.value AND p.kind = s.kind AND p.parked_until <= :now
    )
    FROM seats AS s CROSS JOIN json_each('[0, 1]') AS c
    WHERE s.jobs > 0
)
SELECT kind, sum(jobs), sum(in_flight), min(since)
FROM parts
GROUP BY kind
ORDER BY kind;

-- name: events
-- The timeline of a message, oldest first. :id
SELECT type, metadata, created_at
FROM events
WHERE message_id = :id
ORDER BY id;

-- name: message
-- One message with its content. :id; :tenant, null matches all
SELECT {shown}, c.content
FROM messages AS m LEFT JOIN contents AS c ON c.message_no = m.no
WHERE m.id = :id AND (:tenant IS NULL OR m.tenant = :tenant);

-- name: messages
-- Those of the messages that match, in the order given, each without its content; null matches all.
-- :numbers = [number, …]; :tenant; :kind; :state; :to; :external_id; :provider_id; :recipient_external_id; :tag; :limit
SELECT m.created_at, m.no, {shown}, NULL
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value
WHERE
    (:tenant IS NULL OR m.tenant = :tenant) AND (:kind IS NULL OR m.kind = :kind)
    AND (:state IS NULL OR m.state = :state) AND (:to IS NULL OR m.to_address = :to)
    AND (:external_id IS NULL OR m.external_id = :external_id)
    AND (:provider_id IS NULL OR m.provider_message_id = :provider_id)
    AND (:recipient_external_id IS NULL OR EXISTS (
        SELECT 1 FROM recipient_records AS r
        WHERE r.id = m.recipient_id AND r.tenant = m.tenant AND r.external_id = :recipient_external_id
    ))
    AND (:tag IS NULL OR EXISTS (
        SELECT 1 FROM message_tags AS g
        WHERE g.tenant = m.tenant AND g.tag = :tag AND g.created_at = m.created_at AND g.message_no = m.no
    ))
LIMIT :limit;

-- name: states
-- The number of messages by state.
SELECT state, count(*)
FROM messages
GROUP BY state;

-- name: states_of_tenant
-- The number of messages of a tenant by state. :tenant
SELECT state, count(*)
FROM (
    SELECT state FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT state FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
)
GROUP BY state;

-- name: unsettled
-- The ids of unfinished messages among these. :ids = [id, …]
SELECT i.value
FROM json_each(:ids) AS i JOIN messages AS m ON m.id = i.value
WHERE m.finished_at IS NULL;

-- name: due
-- The next jobs of a tenant, and its claimed ones, at most :limit of each: whether claimed, rank, id.
-- :tenant; :kind; :limit; :now
SELECT * FROM (
    SELECT 1, 0, p.id FROM parked AS p
    WHERE p.tenant = :tenant AND p.is_claimed = 1 AND p.kind = :kind
    ORDER BY p.parked_until, p.id LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT 0, (r.priority << 48) | r.due_at, r.id FROM ready AS r
    WHERE r.tenant = :tenant AND r.kind = :kind
    ORDER BY r.priority, r.due_at, r.id LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT 0, (p.priority << 48) | p.due_at, p.id FROM parked AS p
    WHERE p.tenant = :tenant AND p.is_claimed = 0 AND p.kind = :kind AND p.parked_until <= :now
    ORDER BY p.parked_until, p.id LIMIT :limit
);
