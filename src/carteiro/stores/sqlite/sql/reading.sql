-- name: depths
-- Queue depth, by kind: jobs, those in flight, and the time since which the oldest one is claimable.
-- Reads seat by seat and priority by priority, without the backlog between them. :now; :longest
WITH RECURSIVE heads (kind, seat, priority) AS (
    SELECT s.kind, s.no, (SELECT min(r.priority) FROM ready AS r WHERE r.seat = s.no)
    FROM seats AS s
    WHERE s.jobs > 0
    UNION ALL
    SELECT h.kind, h.seat, (SELECT min(r.priority) FROM ready AS r WHERE r.seat = h.seat AND r.priority > h.priority)
    FROM heads AS h
    WHERE h.priority IS NOT NULL
),
parts (kind, jobs, in_flight, since) AS (
    SELECT s.kind, s.jobs, 0, (SELECT min(d.until) FROM delayed AS d WHERE d.seat = s.no AND d.until <= :now)
    FROM seats AS s
    UNION ALL
    SELECT h.kind, 0, 0, (SELECT min(r.due_at) FROM ready AS r WHERE r.seat = h.seat AND r.priority = h.priority)
    FROM heads AS h
    UNION ALL
    SELECT s.kind, 0, l.until > :now AND l.until <= :now + :longest, iif(l.until <= :now, l.until, NULL)
    FROM leased AS l CROSS JOIN seats AS s ON s.no = l.seat
)
SELECT kind, sum(jobs), sum(in_flight), min(since)
FROM parts
GROUP BY kind
ORDER BY kind;

-- name: events
-- The timeline of a message, oldest first. :id
SELECT type, metadata, created_at
FROM timelines
WHERE message_id = :id
ORDER BY id;

-- name: message
-- One message with its content. :id; :tenant, null matches all
SELECT {shown}, c.content
FROM ledger AS m LEFT JOIN contents AS c ON c.message_no = m.no
WHERE m.id = :id AND (:tenant IS NULL OR m.tenant = :tenant);

-- name: messages
-- Those of the messages that match, in the order given, each without its content; null matches all.
-- :numbers = [number, …]; :tenant; :kind; :state; :to; :external_id; :provider_id; :recipient_external_id; :tag; :code; :limit
SELECT m.created_at, m.no, {shown}, NULL
FROM json_each(:numbers) AS i CROSS JOIN ledger AS m
WHERE
    m.no = i.value AND (:tenant IS NULL OR m.tenant = :tenant) AND (:kind IS NULL OR m.kind = :kind)
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
    AND (:code IS NULL OR :code IN (m.failure ->> 'code', m.failure ->> 'original_code'))
LIMIT :limit;

-- name: states
-- The number of messages by state.
SELECT state, count(*)
FROM ledger
GROUP BY state;

-- name: states_of_tenant
-- The number of messages of a tenant by state. :tenant
SELECT coalesce(e.state, 'ENQUEUED'), count(*)
FROM (
    SELECT no FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT no FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
) AS m LEFT JOIN entries AS e ON e.message_no = m.no
GROUP BY 1;

-- name: unsettled
-- The ids of unfinished messages among these. :ids = [id, …]
SELECT i.value
FROM json_each(:ids) AS i CROSS JOIN ledger AS m
WHERE m.id = i.value AND m.finished_at IS NULL;

-- name: due
-- The next jobs of a tenant, and its claimed ones, at most :limit of each: whether claimed, rank, id.
-- :tenant; :kind; :limit; :now
WITH seat (no) AS (SELECT no FROM seats WHERE kind = :kind AND tenant = :tenant)
SELECT * FROM (
    SELECT 1, 0, m.id FROM leased AS l CROSS JOIN messages AS m ON m.no = l.message_no
    WHERE l.seat = (SELECT no FROM seat)
    ORDER BY l.until, m.id LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT 0, (r.priority << 48) | r.due_at, r.id FROM ready AS r
    WHERE r.seat = (SELECT no FROM seat)
    ORDER BY r.priority, r.due_at, r.id LIMIT :limit
)
UNION ALL
SELECT 0, (m.priority << 48) | m.due_at, m.id
FROM (
    SELECT d.message_no FROM delayed AS d
    WHERE d.seat = (SELECT no FROM seat) AND d.until <= :now
    ORDER BY d.until, d.id LIMIT :limit
) AS q CROSS JOIN ledger AS m
WHERE m.no = q.message_no;
