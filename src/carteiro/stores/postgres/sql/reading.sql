-- name: depths
-- Queue depth, by kind: jobs, those in flight, and the time since which the oldest one is claimable.
-- Reads seat by seat and priority by priority, without the backlog between them; a job whose message is finished
-- is only not cleared away yet. :now; :longest
WITH RECURSIVE seats AS MATERIALIZED (
    SELECT * FROM carteiro.seats_and_notes
),
heads (kind, tenant, rank) AS (
    SELECT s.kind, s.tenant, (
        SELECT r.rank FROM carteiro.ready AS r
        WHERE
            r.tenant = s.tenant AND r.kind = s.kind AND r.rank >= s.lowest
            AND (SELECT e.finished_at FROM carteiro.entries AS e WHERE e.message_no = r.message_no) IS NULL
        ORDER BY r.rank
        LIMIT 1
    )
    FROM seats AS s
    WHERE s.jobs > 0
    UNION ALL
    SELECT h.kind, h.tenant, (
        SELECT r.rank FROM carteiro.ready AS r
        WHERE
            r.tenant = h.tenant AND r.kind = h.kind AND r.rank >= carteiro.rank((h.rank >> 48)::integer + 1, 0)
            AND (SELECT e.finished_at FROM carteiro.entries AS e WHERE e.message_no = r.message_no) IS NULL
        ORDER BY r.rank
        LIMIT 1
    )
    FROM heads AS h
    WHERE h.rank IS NOT NULL
),
parts (kind, jobs, in_flight, since) AS (
    SELECT kind, jobs, 0::bigint, NULL::bigint FROM seats
    UNION ALL
    SELECT kind, 0, 0, carteiro.due_of(rank) FROM heads WHERE rank IS NOT NULL
    UNION ALL
    SELECT s.kind, 0, 0, (
        SELECT d.parked_until FROM carteiro.delayed AS d
        WHERE d.tenant = s.tenant AND d.kind = s.kind AND d.parked_until >= s.due_from AND d.parked_until <= :now
        ORDER BY d.parked_until
        LIMIT 1
    )
    FROM seats AS s
    WHERE s.jobs > 0
    UNION ALL
    SELECT k.kind, 0, (
        SELECT coalesce(sum(cardinality(l.numbers)), 0)::bigint FROM carteiro.leased AS l
        WHERE l.kind = k.kind AND l.parked_until > :now AND l.parked_until <= :now + :longest::bigint
    ), NULL
    FROM (SELECT DISTINCT s.kind FROM seats AS s WHERE s.jobs > 0) AS k
    UNION ALL
    SELECT
        l.kind, 0, count(*) FILTER (WHERE u.until > :now AND u.until <= :now + :longest::bigint),
        min(u.until) FILTER (WHERE u.until <= :now)
    FROM (SELECT DISTINCT s.kind FROM seats AS s WHERE s.jobs > 0) AS k
    JOIN carteiro.leased AS l ON l.kind = k.kind AND l.parked_until <= :now
    CROSS JOIN LATERAL carteiro.ends_of(l.claim_id, l.numbers, l.parked_until) AS u
    GROUP BY l.kind
)
SELECT kind, sum(jobs)::bigint, sum(in_flight)::bigint, min(since)
FROM parts
GROUP BY kind
ORDER BY kind;

-- name: events
-- The timeline of a message, oldest first. :id
SELECT type, metadata, created_at
FROM carteiro.timelines
WHERE message_id = :id
ORDER BY id;

-- name: message
-- One message with its content. :id; :tenant, null matches all
SELECT {shown}, m.content
FROM carteiro.ledger AS m
WHERE m.id = :id AND (:tenant::text IS NULL OR m.tenant = :tenant);

-- name: messages
-- Those of the messages that match, in the order given, each without its content; null matches all.
-- :numbers = [number, …]; :tenant; :kind; :state; :to; :external_id; :provider_id; :recipient_external_id; :tag; :code; :limit
SELECT m.created_at, m.no, {shown}, NULL
FROM unnest(:numbers::bigint[]) WITH ORDINALITY AS i (no, place)
CROSS JOIN LATERAL (SELECT * FROM carteiro.ledger AS n WHERE n.no = i.no OFFSET 0) AS m
WHERE
    (:tenant::text IS NULL OR m.tenant = :tenant) AND (:kind::text IS NULL OR m.kind = :kind)
    AND (:state::text IS NULL OR m.state = :state) AND (:to::text IS NULL OR m.to_address = :to)
    AND (:external_id::text IS NULL OR m.external_id = :external_id)
    AND (:provider_id::text IS NULL OR m.provider_message_id = :provider_id)
    AND (:recipient_external_id::text IS NULL OR :recipient_external_id = (
        SELECT r.external_id FROM carteiro.recipient_records AS r WHERE r.id = m.recipient_id AND r.tenant = m.tenant
    ))
    AND (:tag::text IS NULL OR (
        SELECT true FROM carteiro.message_tags AS g
        WHERE g.tenant = m.tenant AND g.tag = :tag AND g.created_at = m.created_at AND g.message_no = m.no
    ))
    AND (:code::text IS NULL OR m.failure IS NOT NULL AND :code IN (
        carteiro.readable(m.failure::text) ->> 'code', carteiro.readable(m.failure::text) ->> 'original_code'
    ))
ORDER BY i.place
LIMIT :limit;

-- name: states
-- The number of messages by state.
SELECT state, count(*)
FROM carteiro.ledger
GROUP BY state;

-- name: states_of_tenant
-- The number of messages of a tenant by state. :tenant
SELECT coalesce(e.state, 'ENQUEUED'), count(*)
FROM (
    SELECT no FROM carteiro.messages WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT no FROM carteiro.messages WHERE tenant = :tenant AND kind <> 'email:send'
) AS m
LEFT JOIN carteiro.entries AS e ON e.message_no = m.no
GROUP BY e.state;

-- name: unsettled
-- The ids of unfinished messages among these. :ids = [id, …]
SELECT i.id
FROM unnest(:ids::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT FROM carteiro.ledger AS n WHERE n.id = i.id AND n.finished_at IS NULL LIMIT 1) AS m;

-- name: due
-- The next jobs of a tenant, and its claimed ones, at most :limit of each: whether claimed, rank, id.
-- :tenant; :kind; :limit; :now
(
    SELECT true, 0::bigint, m.id
    FROM carteiro.leased AS l CROSS JOIN LATERAL unnest(l.numbers) AS n JOIN carteiro.messages AS m ON m.no = n
    WHERE (l.tenant, l.kind) = (:tenant, :kind)
    ORDER BY l.tenant, l.kind, l.parked_until
    LIMIT :limit
)
UNION ALL
(
    SELECT false, r.rank, r.id
    FROM carteiro.ready AS r
    WHERE r.tenant = :tenant AND r.kind = :kind
    ORDER BY r.rank, r.id
    LIMIT :limit
)
UNION ALL
(
    SELECT false, d.rank, d.id
    FROM carteiro.delayed AS d
    WHERE d.tenant = :tenant AND d.kind = :kind AND d.parked_until <= :now::bigint
    ORDER BY d.parked_until, d.id
    LIMIT :limit
);
