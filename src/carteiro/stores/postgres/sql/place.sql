-- Where the job of a message is, how its tenant stands once the notes are read, and the send limit of its kind.
-- $1 id; $2 now; $3 the longest hold; $4 never
SELECT
    p.parked_until, coalesce(p.is_claimed, false), coalesce(p.claims, r.claims, 0),
    CASE
        WHEN t.paused OR t.disabled THEN $4::bigint
        WHEN s.tenant IS NULL OR s.wake_at IS NOT NULL THEN least(s.wake_at, (
            SELECT min(n.wake_at) FROM carteiro.unseen_notes() AS n
            WHERE n.tenant = m.tenant AND (n.kind = m.kind OR n.kind = '')
        ))
    END,
    (
        SELECT count(*)
        FROM carteiro.ring_clock AS k JOIN carteiro.leased AS l ON l.kind = k.kind
        WHERE l.parked_until > $2 AND l.parked_until <= $2 + $3::bigint AND l.tenant = m.tenant
    ),
    c.limit_count, c.limit_per_ms, c.draws
FROM carteiro.messages AS m
JOIN carteiro.entries AS e ON e.message_no = m.no AND e.finished_at IS NULL
LEFT JOIN carteiro.tenants AS t ON t.id = m.tenant
LEFT JOIN LATERAL (SELECT * FROM carteiro.parked AS q WHERE q.message_no = m.no LIMIT 1) AS p ON true
LEFT JOIN carteiro.ready AS r
    ON
        r.tenant = m.tenant AND r.kind = m.kind AND r.rank = carteiro.rank(m.priority, e.due_at)
        AND r.id = m.id
LEFT JOIN carteiro.seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
LEFT JOIN carteiro.ring_clock AS c ON c.kind = m.kind
WHERE m.id = $1;
